import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../api/client'
import { request } from '../api/request'
import type { Outcome } from '../design/status'

export const summaryQuery = queryOptions({ queryKey: ['summary'], queryFn: () => data(api.GET('/api/v1/summary')) })

export interface Amounts {
  cpu: number
  memory: number
}
/** What the summary says besides what its description has so far. */
export interface SummaryMore {
  pools?: { name: string; nodes: number; nodes_heard: number; capacity: Amounts; reserved: Amounts }[]
  health?: { report_door_time?: string | null; informer_time?: string | null; datastore: string; reading_ms: number }
}

export interface Minute {
  time: string
  submitted: number
  started: number
  ended: { success: number; final_failed: number; cancelled: number }
  waits: { count: number; p50_ms?: number | null; p95_ms?: number | null }
}

export const ranges = { '1h': [60, 1], '6h': [360, 5], '24h': [1440, 20], '7d': [10_080, 120] } as const
export type Range = keyof typeof ranges

export const minutesQuery = (range: Range) =>
  queryOptions({
    queryKey: ['summary', 'minutes', range],
    queryFn: ({ signal }) => {
      const [minutes, step] = ranges[range]
      const from = new Date(Math.floor(Date.now() / 60_000 - minutes + step) * 60_000).toISOString()
      return request<{ items: Minute[]; complete_until_time?: string }>('GET', 'api/v1/summary/minutes', {
        query: { from, step },
        signal,
      })
    },
    refetchInterval: 15_000,
  })

export interface FailingGroup {
  name: string
  owner_id: string
  outcome?: Outcome | null
  exit_code?: number | null
  signal?: number | null
  reason: string
  count: number
  last_job_id: string
  last_time: string
  filter: string
}

export const failingQuery = (within: Range) =>
  queryOptions({
    queryKey: ['summary', 'failing', within],
    queryFn: ({ signal }) =>
      request<{ items: FailingGroup[]; complete: boolean }>('GET', 'api/v1/summary/failing', {
        query: { within: within === '7d' ? '168h' : within },
        signal,
      }),
  })

export interface WaitingJob {
  id: string
  name: string
  owner_id: string
  pool: string
  waiting_since_time: string
  reason: string
  summary: string
  remedy: string
}

export const waitingQuery = queryOptions({
  queryKey: ['summary', 'waiting'],
  queryFn: ({ signal }) =>
    request<{ items: WaitingJob[] }>('GET', 'api/v1/summary/waiting', { query: { limit: 8 }, signal }),
})

/** Whether there was ever a job. */
export const anyJobQuery = queryOptions({
  queryKey: ['any-job'],
  queryFn: ({ signal }) => request<{ items: unknown[] }>('GET', 'api/v1/jobs/rows', { query: { limit: 1 }, signal }),
  staleTime: 5_000,
})
