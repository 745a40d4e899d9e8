// Calls that the committed description of the API does not have yet. Goes away call by call.
import { fetchApi } from './client'

interface Options {
  query?: Record<string, string | number | string[] | undefined>
  body?: unknown
  signal?: AbortSignal
}

export async function request<T>(method: string, path: string, { query = {}, body, signal }: Options = {}): Promise<T> {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== '') params.append(name, String(each))
  }
  const text = params.toString()
  const init: RequestInit = { method }
  if (signal) init.signal = signal
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { 'content-type': 'application/json' }
  }
  const response = await fetchApi(text === '' ? path : `${path}?${text}`, init)
  return (response.status === 204 ? undefined : await response.json()) as T
}
