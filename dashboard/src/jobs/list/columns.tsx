// The columns of the list. Each is a small component that reads one row.
import { createColumnHelper, columnVisibilityFeature, tableFeatures } from '@tanstack/react-table'
import { Link } from '@tanstack/react-router'
import { Labels } from '../../design/parts'
import { StatusWord, useReason } from '../../design/status'
import { useT, type Key } from '../../i18n/i18n'
import { Ago, Span, Time } from '../../time/time'
import type { JobRow } from './rows'

export const features = tableFeatures({ columnVisibilityFeature })
const helper = createColumnHelper<typeof features, JobRow>()

/** Columns in their order; the width in rem, 0 shares what is left. */
export const columnInfo = {
  status: { label: 'column.status', width: 7 },
  name: { label: 'column.name', width: 0 },
  id: { label: 'column.id', width: 5.5 },
  owner: { label: 'column.owner', width: 7 },
  submitted_by: { label: 'column.submitted_by', width: 8 },
  kind: { label: 'column.kind', width: 5 },
  pool: { label: 'column.pool', width: 7 },
  priority: { label: 'column.priority', width: 5 },
  node: { label: 'column.node', width: 7 },
  attempt: { label: 'column.attempt', width: 5 },
  created: { label: 'column.created', width: 7.5 },
  waited: { label: 'column.waited', width: 6 },
  ran: { label: 'column.ran', width: 6 },
  reason: { label: 'column.reason', width: 0 },
  labels: { label: 'column.labels', width: 10 },
} as const satisfies Record<string, { label: Key; width: number }>
export type ColumnId = keyof typeof columnInfo
export const columnIds = Object.keys(columnInfo) as ColumnId[]
/** Without these a row says nothing. */
export const fixedColumns: readonly string[] = ['status', 'name']

export const columns = helper.columns([
  helper.display({ id: 'status', cell: ({ row }) => <StatusWord status={row.original.status} /> }),
  helper.display({ id: 'name', cell: ({ row }) => <Name row={row.original} /> }),
  helper.display({
    id: 'id',
    cell: ({ row }) => (
      <span className="mono" title={row.original.id}>
        {shortId(row.original.id)}
      </span>
    ),
  }),
  helper.display({ id: 'owner', cell: ({ row }) => row.original.owner_id }),
  helper.display({ id: 'submitted_by', cell: ({ row }) => row.original.submitted_by }),
  helper.display({ id: 'kind', cell: ({ row }) => <Kind row={row.original} /> }),
  helper.display({ id: 'pool', cell: ({ row }) => row.original.pool }),
  helper.display({ id: 'priority', cell: ({ row }) => row.original.priority }),
  helper.display({ id: 'node', cell: ({ row }) => row.original.node_name ?? '' }),
  helper.display({ id: 'attempt', cell: ({ row }) => <Attempt row={row.original} /> }),
  helper.display({ id: 'created', cell: ({ row }) => <Time value={row.original.created_time} /> }),
  helper.display({ id: 'waited', cell: ({ row }) => <Waited row={row.original} /> }),
  helper.display({ id: 'ran', cell: ({ row }) => <Ran row={row.original} /> }),
  helper.display({ id: 'reason', cell: ({ row }) => <Reason row={row.original} /> }),
  helper.display({ id: 'labels', cell: ({ row }) => <Labels labels={row.original.labels} /> }),
])

/** The end of an id: its beginning is the time, which neighbours share. */
export function shortId(id: string): string {
  return id.slice(-8)
}

export function Name({ row }: { row: JobRow }) {
  return (
    <Link to="/jobs/$id" params={{ id: row.id }} className="job-link" title={row.name}>
      {row.name}
    </Link>
  )
}

function Kind({ row }: { row: JobRow }) {
  const t = useT()
  return t(`kind.${row.kind}`)
}

function Attempt({ row }: { row: JobRow }) {
  const t = useT()
  if (!row.attempt) return <span className="muted">–</span>
  const retries = row.retry_count > 0 ? t('jobs.retries', { count: row.retry_count }) : ''
  return (
    <span title={retries}>
      {row.attempt}
      {row.retry_count > 0 && <span className="muted"> ↻{row.retry_count}</span>}
    </span>
  )
}

function Waited({ row }: { row: JobRow }) {
  if (row.status === 'ready') return <span className="muted">–</span>
  return (
    <Span
      from={row.waiting_since_time ?? row.created_time}
      to={row.status === 'waiting' ? null : (row.started_time ?? row.finished_time)}
    />
  )
}

function Ran({ row }: { row: JobRow }) {
  return row.started_time ? <Span from={row.started_time} to={row.finished_time} /> : <span className="muted">–</span>
}

/** How the newest attempt ended, or what the job waits for, with the words of who said so. */
export function Reason({ row }: { row: JobRow }) {
  const t = useT()
  const reason = useReason()
  const parts: string[] = []
  if (row.status === 'final_failed' || row.status === 'retry') {
    if (row.outcome) parts.push(t(`outcome.${row.outcome}` as Key))
    if (row.signal) parts.push(t('jobs.signal', { signal: row.signal }))
    else if (row.exit_code) parts.push(t('jobs.exit', { code: row.exit_code }))
  } else if (row.status !== 'success' && row.reason) {
    parts.push(reason(row.reason))
  }
  if (row.message && row.status !== 'success') parts.push(row.message)
  const text = parts.join(' · ')
  return <span title={text}>{text}</span>
}

/** All that matters of a row where there is room for one column only. */
export function Compact({ row }: { row: JobRow }) {
  return (
    <div className="compact-row">
      <div className="row spread">
        <span className="cut">
          <Name row={row} />
        </span>
        <span className="small muted">
          <Ago value={row.finished_time ?? row.started_time ?? row.created_time} />
        </span>
      </div>
      <div className="row small">
        <StatusWord status={row.status} />
        <span className="muted cut">
          <Reason row={row} />
        </span>
      </div>
    </div>
  )
}
