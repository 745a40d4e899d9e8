// The address' query as the pages see it: a text, or a list where a name stands there several times. No JSON in it.
export type Search = Record<string, string | string[] | undefined>

export function parseSearch(text: string): Search {
  const search: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const earlier = search[name]
    if (earlier === undefined) search[name] = value
    else search[name] = Array.isArray(earlier) ? [...earlier, value] : [earlier, value]
  }
  return search
}

export function writeSearch(search: Record<string, unknown>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '') params.append(name, String(each))
    }
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
