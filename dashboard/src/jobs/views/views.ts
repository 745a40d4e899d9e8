import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../../api/client'

/** Filters with names, kept on the server: the reader's own and the shared ones. */
export const viewsQuery = queryOptions({
  queryKey: ['views'],
  queryFn: () => data(api.GET('/api/v1/views')),
  staleTime: 60_000,
})
