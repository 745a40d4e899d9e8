// Where an attempt's time went: waiting, push, staging, run, upload. Pure.
import type { Schemas } from '../../api/client'

export type Stage = 'wait' | 'push' | 'staging' | 'run' | 'upload'
export const stages: readonly Stage[] = ['wait', 'push', 'staging', 'run', 'upload']

export interface Stretch {
  stage: Stage
  /** Milliseconds. */
  from: number
  to: number
}

type Attempt = Schemas['Attempt']
type Event = Schemas['Event']

/** `waitFrom`: when it began to wait for this attempt. `now` ends what goes on; all in milliseconds. */
export function stretches(attempt: Attempt, events: readonly Event[], waitFrom: number, now: number): Stretch[] {
  const time = (text: string | null | undefined) => (text ? Date.parse(text) : null)
  const finishing = events.find((event) => event.attempt === attempt.number && event.to === 'finishing')
  const end = time(attempt.finished_time) ?? now
  const marks: [Stage, number | null][] = [
    ['wait', waitFrom],
    ['push', time(attempt.placed_time)],
    ['staging', time(attempt.accepted_time)],
    ['run', time(attempt.started_time)],
    ['upload', time(finishing?.time)],
  ]
  const known = marks.filter((mark): mark is [Stage, number] => mark[1] !== null)
  return known.map(([stage, from], index) => {
    const to = known[index + 1]?.[1] ?? end
    // Clocks of two machines may disagree by a little; a stretch is never negative.
    return { stage, from, to: Math.max(from, to) }
  })
}

/** When the job began to wait for each attempt: at its creation or last change to `waiting`, whichever is later. */
export function waitStarts(attempts: readonly Attempt[], events: readonly Event[], created: string): number[] {
  const waits = events.filter((event) => event.to === 'waiting').map((event) => Date.parse(event.time))
  return attempts.map((attempt) => {
    const placed = Date.parse(attempt.placed_time)
    const before = waits.filter((time) => time <= placed)
    return Math.min(placed, Math.max(Date.parse(created), ...before))
  })
}
