import { StatusWord, type Status } from '../design/status'
import { useT } from '../i18n/i18n'
import { useNow } from '../time/time'
import { nodeState, SILENT_MS, type Node } from './calls'

const looks: Record<ReturnType<typeof nodeState>, Status> = {
  open: 'success',
  cordoned: 'cancelled',
  draining: 'retry',
  suspended: 'final_failed',
  quarantined: 'final_failed',
  silent: 'waiting',
}

export function NodeState({ node }: { node: Node }) {
  const t = useT()
  const state = nodeState(node, SILENT_MS, useNow())
  return <StatusWord status={looks[state]} word={t(`node.${state}`)} />
}
