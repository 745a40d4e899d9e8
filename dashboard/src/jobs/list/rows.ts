// The rows of the list: pages in the order of the server, newer knowledge of single rows, and what is new at the top.
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { Search } from '../../app/search-params'
import { request } from '../../api/request'
import { useChanges, useRefreshOnChange } from '../../live/live'
import type { Status } from '../../design/status'
import { statuses } from '../../design/status'

export interface JobRow {
  id: string
  owner_id: string
  name: string
  kind: 'task' | 'service'
  status: Status
  reason: string
  submitted_by: string
  pool: string
  priority: number
  labels: Record<string, string>
  created_time: string
  started_time?: string | null
  finished_time?: string | null
  waiting_since_time?: string | null
  retry_count: number
  max_retries: number
  attempt?: number | null
  node_id?: string | null
  node_name?: string | null
  outcome?: string | null
  exit_code?: number | null
  signal?: number | null
  message?: string
}
interface Page {
  items: JobRow[]
  next_cursor?: string | null
}

const PAGE = 100
/** A page of the server may be short, since what it scans is bounded; this many in a row are asked for at a time. */
const SHORT_PAGES = 5
const REFRESH_MS = 1_500

async function readPage(filter: Search, cursor: string | undefined, signal: AbortSignal): Promise<Page> {
  const items: JobRow[] = []
  let next = cursor
  for (let asked = 0; asked < SHORT_PAGES; asked += 1) {
    // The cursor of the next page stands in the one before.
    // oxlint-disable-next-line no-await-in-loop
    const page = await request<Page>('GET', 'api/v1/jobs/rows', {
      query: { ...filter, limit: PAGE, ...(next ? { cursor: next } : {}) },
      signal,
    })
    items.push(...page.items)
    next = page.next_cursor ?? undefined
    if (next === undefined || items.length >= PAGE) break
  }
  return { items, next_cursor: next ?? null }
}

export interface Rows {
  items: JobRow[]
  /** How many rows the newest page has that are not shown, or no longer has. */
  waiting: number
  /** Shows the newest page. */
  apply: () => void
  more: (() => void) | null
  loading: boolean
  error: unknown
  isPlaceholder: boolean
}

/** `held`: the pointer or the keyboard is in the list, so nothing may move. */
export function useRows(filter: Search, held: boolean): Rows {
  const client = useQueryClient()
  const baseKey = useMemo(() => ['jobs', 'base', filter], [filter])
  const headKey = useMemo(() => ['jobs', 'head', filter], [filter])
  const base = useInfiniteQuery({
    queryKey: baseKey,
    queryFn: ({ pageParam, signal }) => readPage(filter, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page) => page.next_cursor ?? undefined,
    staleTime: 0,
    refetchOnMount: 'always',
    placeholderData: keepPreviousData,
    // Only what `apply` does changes what is shown.
    meta: { still: true },
  })
  const head = useQuery({
    queryKey: headKey,
    queryFn: ({ signal }) => readPage(filter, undefined, signal),
    enabled: base.isSuccess && !base.isPlaceholderData,
    staleTime: Number.POSITIVE_INFINITY,
    initialData: base.isPlaceholderData ? undefined : base.data?.pages[0],
  })
  useRefreshOnChange([headKey], REFRESH_MS)
  const patches = usePatches(filter)

  const shown = useMemo(() => base.data?.pages.flatMap((page) => page.items) ?? [], [base.data])
  const newest = head.data?.items
  const items = useMemo(() => {
    const fresh = new Map(newest?.map((row) => [row.id, row]))
    return shown.map((row) => patch(fresh.get(row.id) ?? row, patches.get(row.id)))
  }, [shown, newest, patches])
  const waiting = useMemo(
    () => countDifference(shown, newest, head.data?.next_cursor ?? null),
    [shown, newest, head.data],
  )

  const apply = () => {
    if (head.data === undefined) return
    client.setQueryData(baseKey, { pages: [head.data], pageParams: [undefined] })
  }
  const latest = useRef(apply)
  useEffect(() => {
    latest.current = apply
  })
  useEffect(() => {
    if (waiting > 0 && !held) latest.current()
  }, [waiting, held])
  return {
    items,
    waiting,
    apply,
    more: base.hasNextPage && !base.isFetchingNextPage ? () => void base.fetchNextPage() : null,
    loading: base.isPending || base.isFetchingNextPage,
    error: base.error ?? head.error,
    isPlaceholder: base.isPlaceholderData,
  }
}

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
  const stretch = more === null || last === undefined ? shown : shown.filter((row) => row.id >= last)
  return newest.filter((row) => !have.has(row.id)).length + stretch.filter((row) => !now.has(row.id)).length
}

type Patch = Pick<JobRow, 'status'> & { time: string }

const statusWords = new Set<string>(statuses)

/** What the stream said of rows since the newest page was read: at once in place, before anything is read again. */
function usePatches(filter: Search): ReadonlyMap<string, Patch> {
  const [patches, setPatches] = useState<{ filter: Search; map: ReadonlyMap<string, Patch> }>({
    filter,
    map: new Map(),
  })
  useChanges((batch) => {
    const changes = batch?.filter((change) => statusWords.has(change.to) && change.from !== '') ?? []
    if (changes.length === 0 && batch !== null) return
    const map = new Map(batch === null || patches.filter !== filter || patches.map.size > 5_000 ? [] : patches.map)
    for (const change of changes) map.set(change.job_id, { status: change.to as Status, time: change.time })
    setPatches({ filter, map })
  })
  return patches.map
}

function patch(row: JobRow, change: Patch | undefined): JobRow {
  if (change === undefined || change.status === row.status) return row
  // A row that was read after the change knows better: it has the time that the change gave.
  const known = row.finished_time ?? row.started_time ?? row.created_time
  if (known > change.time) return row
  const ended = change.status === 'success' || change.status === 'final_failed' || change.status === 'cancelled'
  return { ...row, status: change.status, reason: '', finished_time: ended ? change.time : null }
}
