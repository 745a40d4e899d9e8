import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'

export const summaryQuery = queryOptions({ queryKey: ['summary'], queryFn: () => data(api.GET('/api/v1/summary')) })

export type Minute = Schemas['MinuteSpan']
export type WaitingJob = Schemas['WaitingJob']

export const ranges = { '1h': [60, 1], '6h': [360, 5], '24h': [1440, 20], '7d': [10_080, 120] } as const
export type Range = keyof typeof ranges

export const minutesQuery = (range: Range) =>
  queryOptions({
    queryKey: ['summary', 'minutes', range],
    queryFn: ({ signal }) => {
      const [minutes, step] = ranges[range]
      const from = new Date(Math.floor(Date.now() / 60_000 - minutes + step) * 60_000).toISOString()
      return data(api.GET('/api/v1/summary/minutes', { params: { query: { from, step } }, signal }))
    },
    refetchInterval: 15_000,
  })

export const failingQuery = (within: Range) =>
  queryOptions({
    queryKey: ['summary', 'failing', within],
    queryFn: ({ signal }) =>
      data(
        api.GET('/api/v1/summary/failing', {
          params: { query: { within: within === '7d' ? '168h' : within } },
          signal,
        }),
      ),
  })

export const waitingQuery = queryOptions({
  queryKey: ['summary', 'waiting'],
  queryFn: ({ signal }) => data(api.GET('/api/v1/summary/waiting', { params: { query: { limit: 8 } }, signal })),
})

/** Whether there was ever a job. */
export const anyJobQuery = queryOptions({
  queryKey: ['any-job'],
  queryFn: ({ signal }) => data(api.GET('/api/v1/jobs/rows', { params: { query: { limit: 1 } }, signal })),
  staleTime: 5_000,
})
