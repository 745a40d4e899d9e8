import { queryOptions } from '@tanstack/react-query'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => data(api.GET('/api/v1/me')),
  staleTime: 60_000,
})

/** Whether this reader may act for the job's owner. The server decides; this only leaves out what it would refuse. */
export function mayAct(me: Schemas['Me'] | undefined, owner: string): boolean {
  if (me === undefined) return false
  if (me.role === 'admin' || me.role === 'operator') return true
  return me.role === 'submitter' && me.owners.includes(owner)
}

export function mayOperate(me: Schemas['Me'] | undefined): boolean {
  return me?.role === 'admin' || me?.role === 'operator'
}

/** Exchanges a token, or the code of a login link, for the session's cookie. */
export function signIn(secret: { token: string } | { login: string }): Promise<unknown> {
  return data(api.POST('/api/v1/sessions', { body: secret }))
}

export function signOut(): Promise<unknown> {
  return data(api.DELETE('/api/v1/sessions'))
}
