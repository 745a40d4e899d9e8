// The attempts as bars: where the time of each went, on which node, how it ended.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from 'react-aria-components'
import type { Schemas } from '../../api/client'
import { OutcomeWord, PhaseWord } from '../../design/status'
import { language, useT } from '../../i18n/i18n'
import { duration } from '../../time/format'
import { useNow } from '../../time/time'
import { stages, stretches, waitStarts, type Stretch } from './phases'
import { ending } from './sentence'

interface TimelineProps {
  job: Schemas['Job']
  attempts: readonly Schemas['Attempt'][]
  events: readonly Schemas['Event'][]
  chosen: number | null
}

const FEW = 6

export function Timeline({ job, attempts, events, chosen }: TimelineProps) {
  const t = useT()
  const now = useNow()
  const [all, setAll] = useState(false)
  const waits = waitStarts(attempts, events, job.created_time)
  const bars = attempts.map((attempt, index) => ({
    attempt,
    parts: stretches(attempt, events, waits[index] ?? now, now),
  }))
  const longest = Math.max(1, ...bars.map(({ parts }) => (parts.at(-1)?.to ?? 0) - (parts[0]?.from ?? 0)))
  const shown = all ? bars : bars.slice(-FEW)
  const present = stages.filter((stage) => bars.some(({ parts }) => parts.some((part) => part.stage === stage)))
  return (
    <div className="timeline">
      <ol>
        {shown.map(({ attempt, parts }) => (
          <li key={attempt.number} aria-current={attempt.number === chosen}>
            <Link
              to="."
              search={(before) => ({
                ...before,
                attempt: `${attempt.number}`,
                tab: 'log',
                at: undefined,
                to: undefined,
              })}
              resetScroll={false}
              className="attempt-link"
            >
              {t('attempt.number', { number: attempt.number })}
            </Link>
            <span className="attempt-node cut">
              <Link to="/nodes/$id" params={{ id: attempt.node_id }}>
                {attempt.node_name || attempt.node_id.slice(-8)}
              </Link>
            </span>
            <span className="attempt-end">
              {attempt.outcome ? (
                <OutcomeWord outcome={attempt.outcome} />
              ) : attempt.phase ? (
                <PhaseWord phase={attempt.phase} />
              ) : null}
            </span>
            <Bar parts={parts} longest={longest} />
            <span className="attempt-why muted break">
              {attempt.outcome && attempt.outcome !== 'succeeded' && ending(attempt, job, t)}
              {attempt.message !== '' && ` ${attempt.message}`}
              {(attempt.restarts ?? 0) > 0 && ` ${t('attempt.restarts', { count: attempt.restarts ?? 0 })}`}
            </span>
          </li>
        ))}
      </ol>
      <div className="row wrap small muted">
        {present.map((stage) => (
          <span key={stage} className="row legend">
            <i className={`stretch ${stage}`} aria-hidden="true" /> {t(`stage.${stage}`)}
          </span>
        ))}
        {bars.length > FEW && (
          <Button className="button quiet" onPress={() => setAll(!all)}>
            {all ? t('attempt.fewer') : t('attempt.all', { count: bars.length })}
          </Button>
        )}
      </div>
    </div>
  )
}

function Bar({ parts, longest }: { parts: Stretch[]; longest: number }) {
  const t = useT()
  const spoken = parts
    .map(({ stage, from, to }) => `${t(`stage.${stage}`)} ${duration(to - from, language())}`)
    .join(', ')
  const start = parts[0]?.from ?? 0
  const whole = (parts.at(-1)?.to ?? 0) - start
  return (
    <span className="bar-line" role="img" aria-label={spoken} title={spoken}>
      {parts.map(({ stage, from, to }) => (
        <i key={stage} className={`stretch ${stage}`} style={{ flexGrow: Math.max(0.002, (to - from) / longest) }} />
      ))}
      <i style={{ flexGrow: 1 - whole / longest }} />
      <span className="bar-total muted">{duration(whole, language())}</span>
    </span>
  )
}
