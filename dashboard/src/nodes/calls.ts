import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'

export type Node = Schemas['Node']

export type NodeAttempt = Schemas['NodeAttempt']

export const nodesQuery = queryOptions({ queryKey: ['nodes'], queryFn: () => data(api.GET('/api/v1/nodes')) })

export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id],
    queryFn: ({ signal }) => data(api.GET('/api/v1/nodes/{id}', { params: { path: { id } }, signal })),
  })

export const nodeAttemptsQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id, 'attempts'],
    queryFn: ({ signal }) => data(api.GET('/api/v1/nodes/{id}/attempts', { params: { path: { id } }, signal })),
  })

export const drainQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id, 'drain'],
    queryFn: ({ signal }) => data(api.GET('/api/v1/nodes/{id}/drain', { params: { path: { id } }, signal })),
    gcTime: 0,
    staleTime: 0,
  })

export type Gate = 'cordon' | 'uncordon' | 'drain'

export function setGate(id: string, gate: Gate): Promise<Node> {
  const params = { path: { id } }
  if (gate === 'cordon') return data(api.POST('/api/v1/nodes/{id}/cordon', { params }))
  if (gate === 'uncordon') return data(api.POST('/api/v1/nodes/{id}/uncordon', { params }))
  return data(api.POST('/api/v1/nodes/{id}/drain', { params }))
}

/** What is said of a node in one word: the worst that is so. */
export function nodeState(
  node: Node,
  silentAfterMs: number,
  now: number,
): 'quarantined' | 'suspended' | 'silent' | 'draining' | 'cordoned' | 'open' {
  if (node.quarantined) return 'quarantined'
  if (now - Date.parse(node.heard_time) > silentAfterMs) return 'silent'
  if (node.suspended) return 'suspended'
  if (node.gate !== 'open') return node.gate
  return 'open'
}

/** As placement does: a node that was not heard of for so long gets nothing. */
export const SILENT_MS = 15_000
