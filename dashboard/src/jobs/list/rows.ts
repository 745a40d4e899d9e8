// The rows of the list: pages in the order of the server, newer knowledge of single rows, and what is new at the top.
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { Search } from '../../app/search-params'
import { api, data } from '../../api/client'
import type { Schemas } from '../../api/client'
import { filterQuery } from '../filter/grammar'
import { countDifference, patch, type Patch } from './difference'
import { useChanges, useRefreshOnChange } from '../../live/live'
import type { Status } from '../../design/status'
import { statuses } from '../../design/status'

export type JobRow = Schemas['JobRow']
type Page = Schemas['Page_JobRow']

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
    const page = await data(
      api.GET('/api/v1/jobs/rows', {
        params: { query: { ...filterQuery(filter), limit: PAGE, ...(next ? { cursor: next } : {}) } },
        signal,
      }),
    )
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
