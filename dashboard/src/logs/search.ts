// Search on the server: matches page by page, bounded by what one call looks at.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'
import { streamOf, type Stream } from './lines'

export type Match = Omit<Schemas['LogMatch'], 'stream'> & { stream: Stream }

/** So many matches are looked for by themselves; more on demand. */
const ENOUGH = 200

export interface SearchResult {
  matches: Match[]
  /** Whether everything was looked at. */
  complete: boolean
  busy: boolean
  error: unknown
  more: () => void
}

interface Wanted {
  job: string
  attempt: number
  stream: Stream | null
  text: string
  exactCase: boolean
}

export function useLogSearch({ job, attempt, stream, text, exactCase }: Wanted): SearchResult {
  const query = useInfiniteQuery({
    queryKey: ['log-search', job, attempt, stream, text, exactCase],
    enabled: text !== '',
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET('/api/v1/jobs/{id}/logs/search', {
          params: {
            path: { id: job },
            query: {
              q: text,
              attempt,
              case: exactCase ? 'exact' : 'ignore',
              limit: 100,
              ...(stream ? { stream } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    staleTime: 10_000,
    retry: false,
    meta: { still: true },
  })
  const matches =
    query.data?.pages.flatMap((page) => page.items.map((item) => ({ ...item, stream: streamOf(item.stream) }))) ?? []
  const { hasNextPage, isFetching, fetchNextPage, error } = query
  const goOn = hasNextPage && !isFetching && error === null && matches.length < ENOUGH
  useEffect(() => {
    // An empty page with a cursor only says that so much has been looked at.
    if (goOn) void fetchNextPage()
  }, [goOn, fetchNextPage])
  return { matches, complete: !hasNextPage, busy: isFetching, error, more: () => void fetchNextPage() }
}
