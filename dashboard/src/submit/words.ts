// A line as a shell would split it, without expanding anything. Pure.

/** The words; `null` when a quote is not closed. */
export function splitWords(line: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  let quote: string | null = null
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at] ?? ''
    if (quote === "'") {
      if (character === "'") quote = null
      else word += character
    } else if (quote === '"') {
      if (character === '"') quote = null
      else if (character === '\\' && /["\\$`]/.test(line[at + 1] ?? '')) word += line[(at += 1)] ?? ''
      else word += character
    } else if (character === "'" || character === '"') {
      quote = character
      word ??= ''
    } else if (character === '\\' && at + 1 < line.length) {
      word = (word ?? '') + line[(at += 1)]
    } else if (/\s/.test(character)) {
      if (word !== null) words.push(word)
      word = null
    } else {
      word = (word ?? '') + character
    }
  }
  if (quote !== null) return null
  if (word !== null) words.push(word)
  return words
}

/** `NAME=VALUE` lines as pairs; the first line without a name is an error. */
export function readPairs(text: string): { pairs: Record<string, string>; wrong: string | null } {
  const pairs: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at <= 0) return { pairs, wrong: line }
    pairs[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return { pairs, wrong: null }
}

export function writePairs(pairs: Record<string, string> | undefined): string {
  return Object.entries(pairs ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}
