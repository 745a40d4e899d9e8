// How the rows that are shown differ from what is known now. Pure.
import type { Schemas } from '../../api/client'

type JobRow = Schemas['JobRow']

/** Rows of the newest page that are not shown, and rows shown in its stretch that it no longer has. */
export function countDifference(
  shown: readonly JobRow[],
  newest: readonly JobRow[] | undefined,
  more: string | null,
): number {
  if (newest === undefined) return 0
  const have = new Set(shown.map((row) => row.id))
  const now = new Set(newest.map((row) => row.id))
  const last = newest.at(-1)?.id
  const stretch = !more || last === undefined ? shown : shown.filter((row) => row.id >= last)
  return newest.filter((row) => !have.has(row.id)).length + stretch.filter((row) => !now.has(row.id)).length
}

/** What the stream said of a row. */
export type Patch = Pick<JobRow, 'status'> & { time: string }

/** The row with what the stream said of it, unless the row was read after that. */
export function patch(row: JobRow, change: Patch | undefined): JobRow {
  if (change === undefined || change.status === row.status) return row
  // A row that was read after the change knows better: it has the time that the change gave.
  const known = row.finished_time ?? row.started_time ?? row.created_time
  if (known > change.time) return row
  const ended = change.status === 'success' || change.status === 'final_failed' || change.status === 'cancelled'
  return { ...row, status: change.status, reason: '', finished_time: ended ? change.time : null }
}
