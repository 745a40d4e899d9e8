import { useSyncExternalStore } from 'react'

const query = window.matchMedia('(max-width: 820px)')

/** Whether there is room for one column only; the same bound as in the style sheets. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      query.addEventListener('change', watcher)
      return () => query.removeEventListener('change', watcher)
    },
    () => query.matches,
  )
}
