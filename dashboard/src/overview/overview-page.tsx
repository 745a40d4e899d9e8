// What goes on: what fails, what waits and why, how much runs, whether the parts are well.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { ToggleButton, ToggleButtonGroup } from 'react-aria-components'
import type { Schemas } from '../api/client'
import { parseSearch } from '../app/search-params'
import { Empty } from '../design/empty'
import { Failure, Loading, Panel } from '../design/parts'
import { OutcomeWord, Shape, type Status } from '../design/status'
import { useTitle } from '../app/title'
import { useT } from '../i18n/i18n'
import { boundedCount } from '../jobs/list/counts'
import { useWhyText } from '../jobs/why-text'
import { useRefreshOnChange, useStream } from '../live/live'
import { Ago, Span } from '../time/time'
import {
  anyJobQuery,
  failingQuery,
  minutesQuery,
  ranges,
  summaryQuery,
  waitingQuery,
  type Range,
  type WaitingJob,
} from './calls'
import { Fleet, Health } from './fleet'
import { Outcomes, Waits } from './charts'
import './overview.css'

const summaryKeys = [['summary'], ['any-job']]
const rangeNames = Object.keys(ranges) as Range[]

export default function OverviewPage() {
  const t = useT()
  useTitle(t('nav.overview'))
  const [range, setRange] = useState<Range>('1h')
  const summary = useQuery({ ...summaryQuery, refetchInterval: 15_000 })
  const any = useQuery(anyJobQuery)
  useStream(null)
  useRefreshOnChange(summaryKeys, 2_500)
  if (summary.error && !summary.data) {
    return (
      <div className="page">
        <Failure error={summary.error} />
      </div>
    )
  }
  if (!summary.data) {
    return (
      <div className="page">
        <Loading />
      </div>
    )
  }
  const empty = any.data?.items.length === 0
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{t('nav.overview')}</h1>
        {!empty && (
          <ToggleButtonGroup
            aria-label={t('overview.range')}
            className="toggles"
            selectionMode="single"
            disallowEmptySelection
            selectedKeys={[range]}
            onSelectionChange={(keys) => setRange([...keys][0] as Range)}
          >
            {rangeNames.map((name) => (
              <ToggleButton key={name} id={name} className="button">
                {t(`range.${name}`)}
              </ToggleButton>
            ))}
          </ToggleButtonGroup>
        )}
      </div>
      {empty ? (
        <Empty />
      ) : (
        <>
          <Tiles summary={summary.data} />
          <div className="overview-grid">
            <Failing range={range} />
            <Waiting />
            <ChartPanels range={range} />
          </div>
        </>
      )}
      <div className="overview-grid">
        <Fleet summary={summary.data} />
        <Health summary={summary.data} />
      </div>
    </div>
  )
}

const tiles: Status[] = ['final_failed', 'retry', 'waiting', 'running', 'success']

function Tiles({ summary }: { summary: Schemas['Summary'] }) {
  const t = useT()
  return (
    <ul className="tiles">
      {tiles.map((status) => {
        const count = summary.jobs.find((each) => each.status === status)
        const ended = status === 'final_failed' || status === 'success'
        return (
          <li key={status}>
            <Link to="/jobs" search={{ status }} className="tile panel">
              <span className={`status ${status}`}>
                <Shape status={status} />
                {t(`status.${status}`)}
              </span>
              <strong>{boundedCount(count?.count ?? 0, count?.capped ?? false)}</strong>
              <span className="small muted">
                {ended ? (
                  t('overview.last_day')
                ) : status === 'waiting' && summary.oldest_waiting_time ? (
                  <>
                    {t('overview.longest')} <Span from={summary.oldest_waiting_time} />
                  </>
                ) : (
                  t('overview.now')
                )}
              </span>
            </Link>
          </li>
        )
      })}
    </ul>
  )
}

function Failing({ range }: { range: Range }) {
  const t = useT()
  const failing = useQuery(failingQuery(range))
  return (
    <Panel
      title={t('overview.failing')}
      aside={
        <Link to="/jobs" search={{ status: 'final_failed' }} className="small">
          {t('overview.all_failed')}
        </Link>
      }
      flush
    >
      {failing.error ? (
        <Failure error={failing.error} />
      ) : !failing.data ? (
        <Loading />
      ) : failing.data.items.length === 0 ? (
        <p className="nothing muted">{t('overview.nothing_failed')}</p>
      ) : (
        <div className="scroll-x">
          <table className="data">
            <thead>
              <tr>
                <th scope="col">{t('column.name')}</th>
                <th scope="col">{t('overview.how')}</th>
                <th scope="col" className="number">
                  {t('overview.count')}
                </th>
                <th scope="col">{t('overview.last')}</th>
              </tr>
            </thead>
            <tbody>
              {failing.data.items.slice(0, 10).map((group) => (
                <tr key={group.filter + group.last_job_id}>
                  <td className="break">
                    <Link to="/jobs" search={parseSearch(group.filter)}>
                      {group.name}
                    </Link>
                    <div className="small muted">{group.owner_id}</div>
                  </td>
                  <td>
                    {group.outcome && <OutcomeWord outcome={group.outcome} />}{' '}
                    <span className="small muted nowrap">
                      {group.signal
                        ? t('jobs.signal', { signal: group.signal })
                        : group.exit_code
                          ? t('jobs.exit', { code: group.exit_code })
                          : ''}
                    </span>
                  </td>
                  <td className="number">{boundedCount(group.count, false)}</td>
                  <td className="nowrap">
                    <Link to="/jobs/$id" params={{ id: group.last_job_id }}>
                      <Ago value={group.last_time} />
                    </Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

function Waiting() {
  const t = useT()
  const waiting = useQuery(waitingQuery)
  return (
    <Panel
      title={t('overview.waiting')}
      aside={
        <Link to="/jobs" search={{ status: 'waiting' }} className="small">
          {t('overview.all_waiting')}
        </Link>
      }
      flush
    >
      {waiting.error ? (
        <Failure error={waiting.error} />
      ) : !waiting.data ? (
        <Loading />
      ) : waiting.data.items.length === 0 ? (
        <p className="nothing muted">{t('overview.nothing_waits')}</p>
      ) : (
        <ul className="waiting-list">
          {waiting.data.items.map((job) => (
            <li key={job.id}>
              <div className="row spread">
                <Link to="/jobs/$id" params={{ id: job.id }} className="cut">
                  {job.name}
                </Link>
                <span className="small muted">
                  <Span from={job.waiting_since_time} />
                </span>
              </div>
              <WaitingWhy job={job} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function WaitingWhy({ job }: { job: WaitingJob }) {
  const { summary, remedy } = useWhyText()(job)
  return (
    <>
      <p className="small break">{summary}</p>
      {remedy !== '' && <p className="small muted break">{remedy}</p>}
    </>
  )
}

function ChartPanels({ range }: { range: Range }) {
  const t = useT()
  const minutes = useQuery(minutesQuery(range))
  const content = (chart: React.ReactNode) =>
    minutes.error ? <Failure error={minutes.error} /> : !minutes.data ? <Loading /> : chart
  return (
    <>
      <Panel title={t('overview.throughput')} flush>
        {content(<Outcomes items={minutes.data?.items ?? []} step={ranges[range][1]} />)}
      </Panel>
      <Panel title={t('overview.queue_wait')} flush>
        {content(<Waits items={minutes.data?.items ?? []} />)}
      </Panel>
    </>
  )
}
