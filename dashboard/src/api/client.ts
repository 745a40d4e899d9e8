// The one way to the API. Every call answers with its data or throws a `CallError`.
import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export type Schemas = components['schemas']

/** Where the installation lives, with a slash at the end: what `<base>` says. */
export const baseUrl = new URL('.', document.baseURI).href

export const api = createClient<paths>({
  baseUrl: baseUrl.replace(/\/$/, ''),
  credentials: 'same-origin',
})

/** A call that was refused (`status` > 0) or that reached nobody (`status` 0). */
export class CallError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly faults: readonly Schemas['ProblemError'][] = [],
  ) {
    super(detail)
  }
}

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** The data of an answer; throws when there is none. */
export async function data<T>(call: Promise<Answer<T>>): Promise<T> {
  const answer = await call.catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new CallError(0, 'unreachable', error instanceof Error ? error.message : String(error))
  })
  noteServerClock(answer.response)
  if (!answer.response.ok) throw callError(answer.response, answer.error)
  return answer.data as T
}

export function callError(response: Response, body: unknown): CallError {
  const problem = typeof body === 'object' && body !== null ? (body as Partial<Schemas['Problem']>) : {}
  const detail = problem.detail ?? (typeof body === 'string' && body !== '' ? body : response.statusText)
  return new CallError(response.status, problem.code ?? 'unknown', detail, problem.errors ?? [])
}

/** Reads bytes; the answer's body is not JSON. */
export async function fetchApi(path: string, init: RequestInit = {}): Promise<Response> {
  const call = fetch(new URL(path.replace(/^\//, ''), baseUrl), { credentials: 'same-origin', ...init })
  const response = await call.catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new CallError(0, 'unreachable', error instanceof Error ? error.message : String(error))
  })
  if (!response.ok) throw callError(response, await response.json().catch(() => undefined))
  return response
}

let clockOffsetMs = 0

/** A header has whole seconds, so smaller differences than two are taken for none. */
function noteServerClock(response: Response) {
  const date = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(date)) return
  const offset = date - Date.now()
  clockOffsetMs = Math.abs(offset) > 2000 ? offset : 0
}

/** Now, in milliseconds, by the server's clock as far as it is known: what "since" counts from. */
export function serverNow(): number {
  return Date.now() + clockOffsetMs
}
