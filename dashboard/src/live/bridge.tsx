import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useT } from '../i18n/i18n'
import { useChanges, useLiveState } from './live'

/** Reads everything that is shown again when something may have been missed, and says aloud when the page goes silent. */
export function LiveBridge() {
  const t = useT()
  const client = useQueryClient()
  const state = useLiveState()
  useChanges((batch) => {
    if (batch === null)
      void client.invalidateQueries({ type: 'active', predicate: (query) => query.meta?.['still'] !== true })
  })
  useEffect(() => {
    // What failed while nobody answered is tried again as soon as somebody does.
    if (state === 'live')
      void client.refetchQueries({ type: 'active', predicate: (query) => query.state.status === 'error' })
  }, [client, state])
  return (
    <span role="status" className="hidden-text">
      {state === 'reconnecting' || state === 'polling' ? t(`live.${state}`) : ''}
    </span>
  )
}
