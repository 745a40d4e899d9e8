// A status is a colour, a shape and a word, always all three.
import type { Schemas } from '../api/client'
import { useT, type Key } from '../i18n/i18n'
import './status.css'

export type Status = Schemas['Status']
export type Outcome = Schemas['Outcome']
export type Phase = Schemas['Phase']

export const statuses: readonly Status[] = [
  'ready',
  'waiting',
  'running',
  'retry',
  'success',
  'final_failed',
  'cancelled',
]
export const endedStatuses: readonly Status[] = ['success', 'final_failed', 'cancelled']

const shapes: Record<Status, string> = {
  ready: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 8',
  waiting: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3.2l2 1.6',
  running: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M6.6 5.5v5l4-2.5z',
  retry: 'M12.8 6A5.3 5.3 0 1 0 13 9.6M13 2.8V6H9.8',
  success: 'M3 8.6l3.2 3.2L13 4.8',
  final_failed: 'M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4',
  cancelled: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M4.2 11.8l7.6-7.6',
}

export function Shape({ status }: { status: Status }) {
  return (
    <svg className="shape" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[status]} />
    </svg>
  )
}

export function StatusWord({ status, word }: { status: Status; word?: string }) {
  const t = useT()
  return (
    <span className={`status ${status}`}>
      <Shape status={status} />
      {word ?? t(`status.${status}`)}
    </span>
  )
}

/** How an attempt that ended looks like among statuses. */
const outcomeStatus: Record<Outcome, Status> = {
  succeeded: 'success',
  failed: 'final_failed',
  timed_out: 'final_failed',
  oom_killed: 'final_failed',
  lost: 'final_failed',
  launch_failed: 'final_failed',
  not_started: 'ready',
  evicted: 'ready',
  stopped: 'success',
  cancelled: 'cancelled',
}

export function OutcomeWord({ outcome }: { outcome: Outcome }) {
  const t = useT()
  return <StatusWord status={outcomeStatus[outcome]} word={t(`outcome.${outcome}`)} />
}

export function PhaseWord({ phase }: { phase: Phase }) {
  const t = useT()
  return <StatusWord status="running" word={t(`phase.${phase}`)} />
}

/** The codes that stand in `reason` beside a status. */
export const reasons = [
  'placed',
  'starting',
  'running',
  'finishing',
  'restarting',
  'retries_exhausted',
  'not_retryable',
  'platform_failures',
  'expired',
  'backing_off',
  'artifact_missing',
  'run_at',
  'no_capacity',
] as const

const known = new Set<string>(reasons)

/** A reason in the reader's language; a code nobody knows here stays as it is. */
export function useReason(): (reason: string) => string {
  const t = useT()
  return (reason) => (known.has(reason) ? t(`reason.${reason}` as Key) : reason)
}
