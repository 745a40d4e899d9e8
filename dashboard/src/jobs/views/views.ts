import { queryOptions } from '@tanstack/react-query'
import { CallError } from '../../api/client'
import { request } from '../../api/request'

/** A filter with a name, kept on the server. `filter` is a query string as in the address. */
export interface View {
  id: string
  name: string
  filter: string
  shared: boolean
  created_by: string
  created_time: string
  changed_time: string
}

export const viewsQuery = queryOptions({
  queryKey: ['views'],
  queryFn: () =>
    request<{ items: View[] }>('GET', 'api/v1/views').catch((error: unknown) => {
      if (error instanceof CallError && error.status === 404) return { items: [] }
      throw error
    }),
  staleTime: 60_000,
})
