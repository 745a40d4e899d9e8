import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../../api/client'

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ['job', id],
    queryFn: () => data(api.GET('/api/v1/jobs/{id}', { params: { path: { id } } })),
  })

export const attemptsQuery = (id: string) =>
  queryOptions({
    queryKey: ['job', id, 'attempts'],
    queryFn: () => data(api.GET('/api/v1/jobs/{id}/attempts', { params: { path: { id } } })),
  })

/** The whole history as far as one page reaches; services that restart for weeks have more, told by `next_cursor`. */
export const eventsQuery = (id: string) =>
  queryOptions({
    queryKey: ['job', id, 'events'],
    queryFn: () => data(api.GET('/api/v1/jobs/{id}/events', { params: { path: { id }, query: { limit: 500 } } })),
  })

export const whyQuery = (id: string) =>
  queryOptions({
    queryKey: ['job', id, 'why'],
    queryFn: () => data(api.GET('/api/v1/jobs/{id}/why', { params: { path: { id } } })),
  })
