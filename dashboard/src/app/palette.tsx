// Jumps to any page, saved view, node or job, and runs what the page can do.
import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { useState } from 'react'
import { Autocomplete, Input, Menu, MenuItem, SearchField, useFilter } from 'react-aria-components'
import { Window } from '../design/parts'
import { useT } from '../i18n/i18n'
import { viewsQuery } from '../jobs/views/views'
import { nodesQuery } from '../nodes/calls'
import { activeShortcuts } from './keyboard'
import { parseSearch } from './search-params'

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

interface Item {
  id: string
  text: string
  hint: string
  run: () => void
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const t = useT()
  const router = useRouter()
  const [text, setText] = useState('')
  const { contains } = useFilter({ sensitivity: 'base' })
  const views = useQuery(viewsQuery)
  const nodes = useQuery(nodesQuery)
  const actions = useState(() => activeShortcuts().filter(({ keys }) => keys !== 'Ctrl+K'))[0]
  const typed = text.trim()
  const items: Item[] = [
    ...actions.map(({ keys, label, run }) => ({ id: `key ${keys} ${label}`, text: t(label), hint: keys, run })),
    ...(views.data?.items ?? []).map((view) => ({
      id: `view ${view.id}`,
      text: view.name,
      hint: t('palette.view'),
      run: () => void router.navigate({ to: '/jobs', search: parseSearch(view.filter) }),
    })),
    ...(nodes.data?.items ?? []).map((node) => ({
      id: `node ${node.id}`,
      text: node.name,
      hint: t('palette.node'),
      run: () => void router.navigate({ to: '/nodes/$id', params: { id: node.id } }),
    })),
  ]
  const found = items.filter((item) => contains(item.text, typed)).slice(0, 40)
  if (idPattern.test(typed)) {
    const run = () => void router.navigate({ to: '/jobs/$id', params: { id: typed.toLowerCase() } })
    found.unshift({ id: 'job', text: t('palette.open_job', { id: typed }), hint: '', run })
  } else if (typed !== '') {
    const run = () => void router.navigate({ to: '/jobs', search: { q: typed } })
    found.push({ id: 'search', text: t('palette.search_jobs', { text: typed }), hint: '', run })
  }
  const act = (key: string | number) => {
    onClose()
    // After the dialog has given the focus back.
    setTimeout(() => found.find((item) => item.id === key)?.run(), 0)
  }
  return (
    <Window title={t('palette.title')} onClose={onClose}>
      <Autocomplete inputValue={text} onInputChange={setText}>
        <SearchField className="field" aria-label={t('palette.title')} autoFocus>
          <Input placeholder={t('palette.placeholder')} />
        </SearchField>
        <div className="palette-list popover">
          <Menu
            aria-label={t('palette.title')}
            items={found}
            onAction={act}
            renderEmptyState={() => t('palette.nothing')}
          >
            {(item) => (
              <MenuItem id={item.id} textValue={item.text}>
                <span className="grow break">{item.text}</span>
                <span className="muted small">{item.hint}</span>
              </MenuItem>
            )}
          </Menu>
        </div>
      </Autocomplete>
    </Window>
  )
}
