// The tokens: who may do what. A secret is shown once, when it is made.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { Button, Input, Label, Radio, RadioGroup, Text, TextField } from 'react-aria-components'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'
import { Command, Confirm, Failure, FailureText, Loading, Panel, Window } from '../design/parts'
import { StatusWord } from '../design/status'
import { useTitle } from '../app/title'
import { useT } from '../i18n/i18n'
import { Ago, Time, useNow } from '../time/time'
import '../submit/submit.css'

type Token = Schemas['Token']
const tokensKey = ['tokens']
const roles = ['viewer', 'submitter', 'operator', 'admin', 'node'] as const

export default function TokensPage() {
  const t = useT()
  useTitle(t('nav.tokens'))
  const [making, setMaking] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const tokens = useQuery({ queryKey: tokensKey, queryFn: () => data(api.GET('/api/v1/tokens')) })
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{t('nav.tokens')}</h1>
        <Button className="button primary" onPress={() => setMaking(true)}>
          {t('tokens.make')}
        </Button>
      </div>
      {tokens.error ? <Failure error={tokens.error} /> : null}
      <Panel title={t('tokens.all')} flush>
        {tokens.isPending ? <Loading /> : <TokenTable tokens={tokens.data?.items ?? []} />}
      </Panel>
      {making && (
        <MakeDialog
          close={() => setMaking(false)}
          made={(text) => {
            setMaking(false)
            setSecret(text)
          }}
        />
      )}
      {secret !== null && (
        <Window title={t('tokens.made')} onClose={() => setSecret(null)}>
          <p>{t('tokens.once')}</p>
          <Command text={secret} />
          <footer>
            <Button className="button primary" onPress={() => setSecret(null)}>
              {t('dialog.close')}
            </Button>
          </footer>
        </Window>
      )}
    </div>
  )
}

function TokenTable({ tokens }: { tokens: Token[] }) {
  const t = useT()
  const client = useQueryClient()
  const [asked, setAsked] = useState<Token | null>(null)
  const revoke = useMutation({
    mutationFn: (id: string) => data(api.DELETE('/api/v1/tokens/{id}', { params: { path: { id } } })),
    onSuccess: () => {
      setAsked(null)
      return client.invalidateQueries({ queryKey: tokensKey })
    },
  })
  return (
    <div className="scroll-x">
      <table className="data">
        <thead>
          <tr>
            <th scope="col">{t('column.name')}</th>
            <th scope="col">{t('column.status')}</th>
            <th scope="col">{t('tokens.role')}</th>
            <th scope="col">{t('tokens.owners')}</th>
            <th scope="col">{t('tokens.created')}</th>
            <th scope="col">{t('tokens.expires')}</th>
            <th scope="col">
              <span className="hidden-text">{t('tokens.revoke')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id}>
              <td className="break">{token.name}</td>
              <td>
                <TokenState token={token} />
              </td>
              <td>{t(`role.${token.role}`)}</td>
              <td className="break">{token.owners.join(', ')}</td>
              <td>
                <Time value={token.created_time} />
              </td>
              <td>{token.expires_time ? <Ago value={token.expires_time} /> : t('tokens.never')}</td>
              <td>
                {!token.revoked_time && (
                  <Button
                    className="button danger"
                    aria-label={t('tokens.revoke_one', { name: token.name })}
                    onPress={() => setAsked(token)}
                  >
                    {t('tokens.revoke')}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {asked && (
        <Confirm
          title={t('tokens.question', { name: asked.name })}
          action={t('tokens.revoke')}
          danger
          busy={revoke.isPending}
          error={revoke.error}
          onConfirm={() => revoke.mutate(asked.id)}
          onClose={() => setAsked(null)}
        >
          <p className="muted">{t('tokens.revoke_explained')}</p>
        </Confirm>
      )}
    </div>
  )
}

function TokenState({ token }: { token: Token }) {
  const t = useT()
  const now = useNow()
  if (token.revoked_time) return <StatusWord status="cancelled" word={t('tokens.revoked')} />
  if (token.expires_time && Date.parse(token.expires_time) <= now)
    return <StatusWord status="ready" word={t('tokens.expired')} />
  return <StatusWord status="success" word={t('tokens.valid')} />
}

function MakeDialog({ close, made }: { close: () => void; made: (secret: string) => void }) {
  const t = useT()
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Schemas['Role']>('submitter')
  const [owners, setOwners] = useState('')
  const [expires, setExpires] = useState('')
  const make = useMutation({
    mutationFn: () => {
      const list = owners.split(/[\s,]+/).filter((owner) => owner !== '')
      const body = {
        name: name.trim(),
        role,
        owners: list,
        ...(expires.trim() === '' ? {} : { expires_in: expires.trim() }),
      }
      return data(api.POST('/api/v1/tokens', { body }))
    },
    onSuccess: async (created) => {
      await client.invalidateQueries({ queryKey: tokensKey })
      made(created.secret)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    make.mutate()
  }
  return (
    <Window title={t('tokens.make')} onClose={close}>
      <form className="stack" onSubmit={submit}>
        <TextField className="field" value={name} onChange={setName} autoFocus>
          <Label>{t('column.name')}</Label>
          <Input autoComplete="off" />
        </TextField>
        <RadioGroup className="field" value={role} onChange={(value) => setRole(value as Schemas['Role'])}>
          <Label>{t('tokens.role')}</Label>
          <div className="row wrap">
            {roles.map((each) => (
              <Radio key={each} value={each} className="radio">
                <span className="dot" aria-hidden="true" />
                {t(`role.${each}`)}
              </Radio>
            ))}
          </div>
        </RadioGroup>
        <TextField className="field" value={owners} onChange={setOwners}>
          <Label>{t('tokens.owners')}</Label>
          <Input autoComplete="off" />
          <Text slot="description">{t('tokens.owners_hint')}</Text>
        </TextField>
        <TextField className="field" value={expires} onChange={setExpires}>
          <Label>{t('tokens.expires')}</Label>
          <Input autoComplete="off" placeholder="90d" />
          <Text slot="description">{t('tokens.expires_hint')}</Text>
        </TextField>
        {make.error && (
          <div className="notice error" role="alert">
            <FailureText error={make.error} />
          </div>
        )}
        <footer>
          <Button className="button" onPress={close}>
            {t('dialog.back')}
          </Button>
          <Button className="button primary" type="submit" isDisabled={make.isPending || name.trim() === ''}>
            {t('tokens.make')}
          </Button>
        </footer>
      </form>
    </Window>
  )
}
