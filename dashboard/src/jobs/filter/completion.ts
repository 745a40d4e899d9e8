// What the filter bar offers while somebody types.
import { useQuery } from '@tanstack/react-query'
import { api, data } from '../../api/client'
import { filterKey, filterKeys } from './grammar'

const fixed: Record<string, readonly string[]> = {
  status: ['ready', 'waiting', 'running', 'retry', 'success', 'final_failed', 'cancelled'],
  kind: ['task', 'service'],
  outcome: [
    'succeeded',
    'failed',
    'timed_out',
    'oom_killed',
    'lost',
    'launch_failed',
    'not_started',
    'evicted',
    'stopped',
    'cancelled',
  ],
  lane: ['0', '1', '2', '3', '4'],
  exit: ['1', '2', '126', '127', '137', '143'],
  signal: ['6', '9', '11', '15'],
  reason: [
    'retries_exhausted',
    'not_retryable',
    'platform_failures',
    'expired',
    'placed',
    'starting',
    'finishing',
    'restarting',
    'backing_off',
    'artifact_missing',
    'run_at',
  ],
}
const asked = new Set(['owner', 'name', 'label', 'pool', 'node'])
const ages = ['age<1h', 'age<1d', 'age<7d', 'age>1h', 'age>1d']

export interface Offer {
  /** What the bar holds when this is chosen. */
  text: string
  /** Whether a token is complete with it. */
  whole: boolean
}

/** Offers for the last word of what was typed. */
export function useOffers(typed: string): Offer[] {
  const cut = typed.search(/\S*$/)
  const before = typed.slice(0, cut)
  const negation = typed.slice(cut).startsWith('!') ? '!' : ''
  const word = typed.slice(cut + negation.length)
  const label = /^label[.:]([^=:]+)[=:](.*)$/.exec(word)
  const pair = /^([a-z_]+):(.*)$/.exec(word)
  const key = label ? `label:${label[1]}` : (filterKey(pair?.[1] ?? '') ?? '')
  const typedValue = label ? (label[2] ?? '') : (pair?.[2] ?? '')
  const list = typedValue.slice(0, typedValue.lastIndexOf(',') + 1)
  const prefix = typedValue.slice(list.length)
  const wanted = asked.has(key) || label !== null
  const values = useQuery({
    queryKey: ['values', key, prefix],
    queryFn: ({ signal }) =>
      data(api.GET('/api/v1/jobs/values', { params: { query: { key, prefix, limit: 20 } }, signal })),
    enabled: wanted,
    staleTime: 30_000,
    retry: false,
    placeholderData: (earlier) => earlier,
  })
  if (key === '') {
    const names = [...filterKeys.map((each) => `${each}:`), ...ages].filter((each) => each.startsWith(word))
    return names.map((name) => ({ text: `${before}${negation}${name}`, whole: !name.endsWith(':') }))
  }
  const found = wanted ? (values.data?.items ?? []) : (fixed[key] ?? [])
  const head = label ? `label.${label[1]}=` : `${key}:`
  return found
    .filter((value) => value.startsWith(prefix))
    .map((value) =>
      key === 'label'
        ? { text: `${before}${negation}label.${value}=`, whole: false }
        : { text: `${before}${negation}${head}${list}${quoted(value)}`, whole: true },
    )
}

function quoted(value: string): string {
  return /\s/.test(value) ? `"${value}"` : value
}
