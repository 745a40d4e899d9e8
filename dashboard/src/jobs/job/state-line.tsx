// The status drawn as the way a job goes, with the times at which it got there.
import type { Schemas } from '../../api/client'
import { Shape, type Status } from '../../design/status'
import { useT, type Key } from '../../i18n/i18n'
import { Span, Time } from '../../time/time'

interface Step {
  key: string
  label: Key
  time: string | null
  status: Status
}

interface StateLineProps {
  job: Schemas['Job']
  newest: Schemas['Attempt'] | undefined
  events: readonly Schemas['Event'][]
}

export function StateLine({ job, newest, events }: StateLineProps) {
  const t = useT()
  const steps = stepsOf(job, newest, events)
  const current = steps.findLastIndex((step) => step.time !== null)
  return (
    <ol className="state-line" aria-label={t('state.label')}>
      {steps.map((step, index) => {
        const next = steps.slice(index + 1).find((each) => each.time !== null)
        const reached = step.time !== null
        return (
          <li
            key={step.key}
            className={reached ? 'reached' : 'open'}
            aria-current={index === current ? 'step' : undefined}
          >
            <span className={`state-word status ${reached ? step.status : 'ready'}`}>
              <Shape status={reached ? step.status : 'ready'} />
              {t(step.label)}
            </span>
            <span className="small muted">
              {reached ? <Time value={step.time} /> : '–'}
              {reached && (next ?? index === current) && index < steps.length - 1 && (
                <>
                  {' '}
                  · <Span from={step.time} to={next?.time} />
                </>
              )}
            </span>
          </li>
        )
      })}
    </ol>
  )
}

const endLabels: Partial<Record<Status, Key>> = {
  success: 'status.success',
  final_failed: 'status.final_failed',
  cancelled: 'status.cancelled',
}

function stepsOf(
  job: Schemas['Job'],
  newest: Schemas['Attempt'] | undefined,
  events: readonly Schemas['Event'][],
): Step[] {
  const lastTo = (to: string) => events.findLast((event) => event.to === to)?.time ?? null
  const waiting = lastTo('waiting')
  const finishing = newest
    ? (events.findLast((event) => event.to === 'finishing' && event.attempt === newest.number)?.time ?? null)
    : null
  const isOver = job.finished_time !== null && job.finished_time !== undefined
  // While it waits again, what an earlier attempt reached says nothing of the next one.
  const again = job.status === 'waiting' || job.status === 'retry' || job.status === 'ready'
  const of = (time: string | null | undefined) => (again ? null : (time ?? null))
  const end: Step = isOver
    ? { key: 'end', label: endLabels[job.status] ?? 'state.end', time: job.finished_time ?? null, status: job.status }
    : { key: 'end', label: 'state.end', time: null, status: 'ready' }
  const steps: Step[] = [
    { key: 'created', label: 'state.created', time: job.created_time, status: 'ready' },
    ...(job.status === 'retry'
      ? [{ key: 'retry', label: 'status.retry', time: lastTo('retry') ?? job.created_time, status: 'retry' } as const]
      : []),
    {
      key: 'waiting',
      label: 'status.waiting',
      time: job.status === 'retry' || job.status === 'ready' ? null : waiting,
      status: 'waiting',
    },
    { key: 'placed', label: 'phase.placed', time: of(newest?.placed_time), status: 'running' },
    { key: 'starting', label: 'phase.starting', time: of(newest?.accepted_time), status: 'running' },
    { key: 'running', label: 'phase.running', time: of(newest?.started_time), status: 'running' },
    ...(finishing
      ? [{ key: 'finishing', label: 'phase.finishing', time: of(finishing), status: 'running' } as const]
      : []),
    end,
  ]
  // Of a job that is over, what it never reached is left out.
  return isOver ? steps.filter((step) => step.time !== null) : steps
}
