// The filter grammar: what is typed into the filter bar, as the address and the server have it. Pure.
import type { Search } from '../../app/search-params'
import { parseDuration } from '../../time/format'

/** The filters, by the name that the server and the address use. */
export const filterKeys = [
  'status',
  'name',
  'owner',
  'label',
  'node',
  'pool',
  'submitted_by',
  'kind',
  'outcome',
  'exit',
  'signal',
  'reason',
  'lane',
  'origin',
  'idempotency_key',
  'created_after',
  'created_before',
] as const
export type FilterKey = (typeof filterKeys)[number]

/** One token of the bar; `q` is the free text. */
export interface Token {
  key: FilterKey | 'q'
  value: string
}

const spellings: Record<string, FilterKey> = { submitter: 'submitted_by', state: 'status', key: 'idempotency_key' }

export function filterKey(name: string): FilterKey | null {
  return filterKeys.find((key) => key === name) ?? spellings[name] ?? null
}

/** The tokens of an address, in the order of `filterKeys`; what is no filter is left out. */
export function tokensOf(search: Search): Token[] {
  const tokens: Token[] = []
  for (const key of [...filterKeys, 'q'] as const) {
    const value = search[key]
    for (const each of Array.isArray(value) ? value : [value]) if (each) tokens.push({ key, value: each })
  }
  return tokens
}

/** The address of tokens. Only labels may stand there several times; of others the last one counts. */
export function searchOf(tokens: readonly Token[]): Search {
  const search: Search = {}
  const labels = [...new Set(tokens.filter(({ key }) => key === 'label').map(({ value }) => value))]
  for (const { key, value } of tokens) if (key !== 'label') search[key] = value
  if (labels.length > 0) search['label'] = labels.length === 1 ? labels[0] : labels
  return search
}

/**
 * Adds what was typed, such as `status:failed !owner:ops label.team=rev age<2h nightly`, to tokens. `now` is what an age
 * counts from. Words that are no filter become the free text.
 */
export function addTyped(tokens: readonly Token[], typed: string, now: Date): Token[] {
  const added = words(typed).map((word) => wordToken(word, now))
  const free = added.filter(({ key }) => key === 'q').map(({ value }) => value)
  const filters = added.filter(({ key }) => key !== 'q')
  const replaced = new Set<string>(filters.filter(({ key }) => key !== 'label').map(({ key }) => key))
  const kept = tokens.filter(({ key }) => !replaced.has(key) && !(key === 'q' && free.length > 0))
  const text: Token[] = free.length > 0 ? [{ key: 'q', value: free.join(' ') }] : []
  return tokensOf(searchOf([...kept, ...filters, ...text]))
}

/** Words between spaces; what stands in double quotes is one. */
export function words(typed: string): string[] {
  const found: string[] = []
  let word = ''
  let quoted = false
  for (const character of typed) {
    if (character === '"') quoted = !quoted
    else if (/\s/.test(character) && !quoted) {
      if (word !== '') found.push(word)
      word = ''
    } else word += character
  }
  if (word !== '') found.push(word)
  return found
}

function wordToken(word: string, now: Date): Token {
  const negated = word.startsWith('!')
  const rest = negated ? word.slice(1) : word
  const age = /^age([<>])(.+)$/.exec(rest)
  const ageMs = age ? parseDuration(age[2] ?? '') : null
  if (age && ageMs !== null) {
    const younger = (age[1] === '<') !== negated
    return { key: younger ? 'created_after' : 'created_before', value: new Date(now.getTime() - ageMs).toISOString() }
  }
  const label = /^label\.([^=:]+)[=:](.*)$/.exec(rest)
  if (label) return { key: 'label', value: `${negated ? '!' : ''}${label[1]}:${label[2]}` }
  const pair = /^([a-z_]+):(.+)$/.exec(rest)
  const key = pair ? filterKey(pair[1] ?? '') : null
  if (!pair || key === null) return { key: 'q', value: word }
  const value = (pair[2] ?? '').replace(/^!/, '')
  const isNegated = negated || pair[2]?.startsWith('!') === true
  return { key, value: `${isNegated ? '!' : ''}${key === 'status' ? statusWords(value) : value}` }
}

/** People say `failed`; the status is `final_failed`. */
function statusWords(value: string): string {
  const meant: Record<string, string> = { failed: 'final_failed', succeeded: 'success', queued: 'waiting' }
  return value
    .split(',')
    .map((word) => meant[word] ?? word)
    .join(',')
}

/** Whether a status passes a `status` filter. */
export function statusPasses(filter: string | undefined, status: string): boolean {
  if (!filter) return true
  const negated = filter.startsWith('!')
  return (
    filter
      .slice(negated ? 1 : 0)
      .split(',')
      .includes(status) !== negated
  )
}

/** Only what is a filter, as the server takes it. */
export function filterOnly(search: Search): Search {
  return searchOf(tokensOf(search))
}

/** A filter as the API's client takes it. */
export function filterQuery(
  filter: Search,
): Partial<Record<Exclude<FilterKey | 'q', 'label'>, string>> & { label?: string[] } {
  const query: Record<string, string | string[]> = {}
  for (const { key, value } of tokensOf(filter)) {
    if (key === 'label') query[key] = [...(query[key] ?? []), value]
    else query[key] = value
  }
  return query
}

/** A value in the form that matches exactly this text. */
export function exact(text: string): string {
  return text.replace(/[\\,*]/g, (character) => `\\${character}`).replace(/^!/, '\\!')
}
