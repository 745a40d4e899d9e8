import { Button } from 'react-aria-components'
import { useT } from '../i18n/i18n'
import { stream, useLiveState } from './live'

/** Says whether the page follows what happens, and stops or resumes it. */
export function LiveChip() {
  const t = useT()
  const state = useLiveState()
  if (state === 'idle') return null
  const paused = state === 'paused'
  return (
    <Button
      className={`button quiet live-chip ${state}`}
      aria-label={`${t(`live.${state}`)}. ${paused ? t('live.resume') : t('live.pause')}`}
      onPress={() => (paused ? stream.resume() : stream.pause())}
    >
      <span className={state === 'live' || paused ? 'dot' : 'dot pulse'} aria-hidden="true" />
      <span>{t(`live.${state}`)}</span>
    </Button>
  )
}
