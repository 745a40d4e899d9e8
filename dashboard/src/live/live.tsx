// The page's stream, for components: what it wants, what follows from a change, and the state that everybody sees.
import { useQueryClient, type QueryKey } from '@tanstack/react-query'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { EventStream, type Batch, type LiveState } from './stream'

export const stream = new EventStream()

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (watcher) => stream.watch(watcher),
    () => stream.state,
  )
}

/** Opens the page's stream: all events, or those of one job. One page, one call. */
export function useStream(job: string | null): void {
  useEffect(() => {
    stream.want(job)
    return () => stream.want(undefined)
  }, [job])
}

/** Calls `handle` with each batch of changes; `null` says that something may have been missed. */
export function useChanges(handle: (batch: Batch) => void): void {
  const latest = useRef(handle)
  useEffect(() => {
    latest.current = handle
  })
  useEffect(() => stream.listen((batch) => latest.current(batch)), [])
}

/** Of the time, at most this share goes into reading again: a server that answers slowly is asked less. */
const READING_SHARE = 0.1

/** Reads these queries again after changes, at most once in `everyMs`. The first change acts at once. */
export function useRefreshOnChange(keys: readonly QueryKey[], everyMs: number): void {
  const client = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const next = useRef(0)
  useChanges(() => {
    if (timer.current !== undefined) return
    timer.current = setTimeout(
      () => {
        timer.current = undefined
        const start = Date.now()
        next.current = start + everyMs
        void Promise.all(keys.map((queryKey) => client.invalidateQueries({ queryKey }))).then(() => {
          const tookMs = Date.now() - start
          next.current = Math.max(next.current, start + tookMs / READING_SHARE)
        })
      },
      Math.max(0, next.current - Date.now()),
    )
  })
  useEffect(() => () => clearTimeout(timer.current), [])
}
