import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../api/client'

export const nodesQuery = queryOptions({
  queryKey: ['nodes'],
  queryFn: () => data(api.GET('/api/v1/nodes')),
})
