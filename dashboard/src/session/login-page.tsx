// Signs in with a token, or by the one-time code behind the `#` of a login link.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useState, type FormEvent } from 'react'
import { Button, Input, Label, TextField } from 'react-aria-components'
import { CallError } from '../api/client'
import { Command, FailureText } from '../design/parts'
import { useTitle } from '../app/title'
import { useT } from '../i18n/i18n'
import { LanguageMenu, ThemeMenu } from '../app/menus'
import { signIn } from './me'
import './login.css'

// The code leaves the address bar before anything else happens with it.
const linkCode = window.location.hash.slice(1)
if (linkCode !== '') window.history.replaceState(null, '', window.location.pathname + window.location.search)

export default function LoginPage() {
  const t = useT()
  useTitle(t('login.title'))
  const router = useRouter()
  const client = useQueryClient()
  const search = useSearch({ strict: false })
  const [token, setToken] = useState('')
  const enter = useMutation({
    mutationFn: signIn,
    onSuccess: async () => {
      client.clear()
      const next = typeof search['next'] === 'string' && /^\/(?!\/)/.test(search['next']) ? search['next'] : '/'
      await router.navigate({ href: next, replace: true })
    },
  })
  const { mutate } = enter
  useEffect(() => {
    if (linkCode.startsWith('jl_')) mutate({ login: linkCode })
  }, [mutate])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim() !== '') mutate({ token: token.trim() })
  }
  return (
    <main className="login">
      <div className="row spread">
        <p className="brand">Jobyard</p>
        <div className="row">
          <ThemeMenu />
          <LanguageMenu />
        </div>
      </div>
      <form className="panel" onSubmit={submit}>
        <div className="body stack">
          <h1>{t('login.title')}</h1>
          <TextField className="field" type="password" value={token} onChange={setToken} autoFocus autoComplete="off">
            <Label>{t('login.token')}</Label>
            <Input />
          </TextField>
          {enter.error && (
            <div className="notice error" role="alert">
              {enter.error instanceof CallError && enter.error.status === 401 ? (
                <p>{t('login.unknown')}</p>
              ) : (
                <FailureText error={enter.error} />
              )}
            </div>
          )}
          <div>
            <Button className="button primary" type="submit" isDisabled={enter.isPending}>
              {t('login.enter')}
            </Button>
          </div>
          <p className="muted">{t('login.hint')}</p>
          <Command text="cat jobyard-data/admin.token" />
        </div>
      </form>
    </main>
  )
}
