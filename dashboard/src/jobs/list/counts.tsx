// How many jobs match, by status; each a way to narrow the list. Counting is bounded, and says so.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Search } from '../../app/search-params'
import { api, data } from '../../api/client'
import { filterQuery } from '../filter/grammar'
import { Shape, statuses, type Status } from '../../design/status'
import { language, useT } from '../../i18n/i18n'
import { useRefreshOnChange } from '../../live/live'

/** `10,000+` where counting stopped. */
export function boundedCount(count: number, atLeast: boolean): string {
  return `${new Intl.NumberFormat(language()).format(count)}${atLeast ? '+' : ''}`
}

export function StatusCounts({ filter }: { filter: Search }) {
  const t = useT()
  const chosen = typeof filter['status'] === 'string' ? filter['status'] : undefined
  const rest = useMemo(() => ({ ...filter, status: undefined }), [filter])
  const key = useMemo(() => ['jobs', 'count', rest], [rest])
  const counts = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => data(api.GET('/api/v1/jobs/count', { params: { query: filterQuery(rest) }, signal })),
    placeholderData: keepPreviousData,
    retry: false,
  })
  useRefreshOnChange([key], 3_000)
  const of = (status: Status) => counts.data?.by_status.find((each) => each.status === status)
  const partial = counts.data?.complete === false
  return (
    <nav className="counts" aria-label={t('jobs.by_status')}>
      <Link to="/jobs" search={rest} aria-current={chosen === undefined}>
        {t('jobs.all')}
        {counts.data && (
          <span className="number">{boundedCount(counts.data.count, counts.data.capped || partial)}</span>
        )}
      </Link>
      {statuses.map((status) => {
        const count = of(status)
        return (
          <Link key={status} to="/jobs" search={{ ...rest, status }} aria-current={chosen === status}>
            <span className={`status ${status}`}>
              <Shape status={status} />
            </span>
            {t(`status.${status}`)}
            {counts.data && (
              <span className="number">{boundedCount(count?.count ?? 0, count?.capped === true || partial)}</span>
            )}
          </Link>
        )
      })}
    </nav>
  )
}
