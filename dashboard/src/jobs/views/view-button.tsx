// Keeps the filter of the list under a name, for its maker or for everybody.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { Button, Checkbox, Input, Label, TextField } from 'react-aria-components'
import { api, data } from '../../api/client'
import { writeSearch, type Search } from '../../app/search-params'
import { FailureText, Window } from '../../design/parts'
import { useT } from '../../i18n/i18n'
import { meQuery } from '../../session/me'
import { viewsQuery } from './views'

export function ViewButton({ filter }: { filter: Search }) {
  const t = useT()
  const client = useQueryClient()
  const me = useQuery(meQuery)
  const views = useQuery(viewsQuery)
  const [open, setOpen] = useState(false)
  const text = writeSearch(filter).slice(1)
  const present = views.data?.items.find((view) => view.filter === text)
  const remove = useMutation({
    mutationFn: (id: string) => data(api.DELETE('/api/v1/views/{id}', { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: viewsQuery.queryKey }),
  })
  if (text === '') return null
  if (present) {
    const own = present.created_by === me.data?.name || me.data?.role === 'admin'
    return (
      <span className="row small muted">
        {present.shared ? t('views.is_shared', { name: present.name }) : t('views.is_own', { name: present.name })}
        {own && (
          <Button className="button" onPress={() => remove.mutate(present.id)}>
            {t('views.remove')}
          </Button>
        )}
      </span>
    )
  }
  return (
    <>
      <Button className="button" onPress={() => setOpen(true)}>
        {t('views.save')}
      </Button>
      {open && <SaveDialog filter={text} close={() => setOpen(false)} />}
    </>
  )
}

function SaveDialog({ filter, close }: { filter: string; close: () => void }) {
  const t = useT()
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [shared, setShared] = useState(false)
  const save = useMutation({
    mutationFn: () => data(api.POST('/api/v1/views', { body: { name: name.trim(), filter, shared } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: viewsQuery.queryKey })
      close()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() !== '') save.mutate()
  }
  return (
    <Window title={t('views.save')} onClose={close}>
      <form className="stack" onSubmit={submit}>
        <TextField className="field" value={name} onChange={setName} autoFocus maxLength={100}>
          <Label>{t('views.name')}</Label>
          <Input />
        </TextField>
        <Checkbox className="column-choice" isSelected={shared} onChange={setShared}>
          <span className="box" aria-hidden="true" />
          {t('views.share')}
        </Checkbox>
        {save.error && (
          <div className="notice error" role="alert">
            <FailureText error={save.error} />
          </div>
        )}
        <footer>
          <Button className="button" onPress={close}>
            {t('dialog.back')}
          </Button>
          <Button className="button primary" type="submit" isDisabled={save.isPending || name.trim() === ''}>
            {t('views.save')}
          </Button>
        </footer>
      </form>
    </Window>
  )
}
