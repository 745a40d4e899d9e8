// Why a job waits, in the reader's language: by the stable word that the server gives; its own words where that is new.
import { useT, type Key } from '../i18n/i18n'

const known = new Set([
  'no_nodes',
  'never_fits',
  'no_open_node',
  'no_capacity',
  'next_in_turn',
  'artifact_missing',
  'run_at',
  'backing_off',
])
/** With these there is nothing to do but to wait. */
const idle = new Set(['next_in_turn', 'run_at', 'backing_off'])

interface Told {
  reason: string
  summary: string
  remedy: string
}

export function useWhyText(): (told: Told) => { summary: string; remedy: string } {
  const t = useT()
  return (told) =>
    known.has(told.reason)
      ? {
          summary: t(`waits_for.${told.reason}` as Key),
          remedy: idle.has(told.reason) ? '' : t(`would_help.${told.reason}` as Key),
        }
      : { summary: told.summary, remedy: told.remedy }
}
