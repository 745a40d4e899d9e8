// What can be done with a job, and when.
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'
import type { Status } from '../design/status'

export type JobAction = 'cancel' | 'stop' | 'retry'

/** Whether the action changes anything for a job of this status and kind. */
export function canDo(action: JobAction, status: Status, kind: Schemas['JobKind']): boolean {
  const ended = status === 'success' || status === 'final_failed' || status === 'cancelled'
  if (action === 'retry') return status === 'final_failed' || status === 'cancelled'
  if (action === 'stop') return kind === 'service' && !ended
  return !ended
}

/** `seenAttempt`: the newest attempt that the page showed; a retry does nothing when there is a newer one. */
export function act(action: JobAction, id: string, seenAttempt: number | null | undefined): Promise<Schemas['Job']> {
  const params = { path: { id } }
  if (action === 'cancel') return data(api.POST('/api/v1/jobs/{id}/cancel', { params }))
  if (action === 'stop') return data(api.POST('/api/v1/jobs/{id}/stop', { params }))
  return data(api.POST('/api/v1/jobs/{id}/retry', { params, body: { after_attempt: seenAttempt ?? null } }))
}
