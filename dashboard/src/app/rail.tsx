// The rail: pages in groups. A group has room for what will stand in it; there are no entries without a page.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Schemas } from '../api/client'
import { useT, type Key } from '../i18n/i18n'
import { viewsQuery } from '../jobs/views/views'
import { parseSearch } from './search-params'

interface Entry {
  to: '/' | '/jobs' | '/nodes' | '/submit' | '/audit' | '/tokens' | '/reference'
  label: Key
}

const work: Entry[] = [
  { to: '/', label: 'nav.overview' },
  { to: '/jobs', label: 'nav.jobs' },
]
const workEnd: Entry[] = [{ to: '/submit', label: 'nav.submit' }]
const fleet: Entry[] = [{ to: '/nodes', label: 'nav.nodes' }]
const help: Entry[] = [{ to: '/reference', label: 'nav.reference' }]
const admin: Entry[] = [
  { to: '/audit', label: 'nav.audit' },
  { to: '/tokens', label: 'nav.tokens' },
]

interface RailProps {
  me: Schemas['Me'] | undefined
  onNavigate?: () => void
}

export function Rail({ me, onNavigate }: RailProps) {
  const t = useT()
  return (
    <nav
      className="rail"
      aria-label={t('nav.label')}
      onClick={(event) => event.target instanceof HTMLAnchorElement && onNavigate?.()}
    >
      <p className="brand">Jobyard</p>
      <Group title={t('nav.work')}>
        <Entries entries={work} />
        <SavedViews />
        <Entries entries={workEnd} />
      </Group>
      <Group title={t('nav.fleet')}>
        <Entries entries={fleet} />
      </Group>
      {me?.role === 'admin' && (
        <Group title={t('nav.admin')}>
          <Entries entries={admin} />
        </Group>
      )}
      <Group title={t('nav.help')}>
        <Entries entries={help} />
      </Group>
    </nav>
  )
}

function Group({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className="group">
      <h2>{title}</h2>
      <ul>{children}</ul>
    </div>
  )
}

function Entries({ entries }: { entries: Entry[] }) {
  const t = useT()
  return entries.map(({ to, label }) => (
    <li key={to}>
      <Link to={to} search={{}} activeOptions={{ exact: to === '/', includeSearch: to === '/jobs' }}>
        {t(label)}
      </Link>
    </li>
  ))
}

function SavedViews() {
  const views = useQuery(viewsQuery)
  const items = views.data?.items ?? []
  return items.slice(0, 12).map((view) => (
    <li key={view.id} className="view">
      <Link to="/jobs" search={parseSearch(view.filter)} activeOptions={{ includeSearch: true }} title={view.name}>
        {view.name}
      </Link>
    </li>
  ))
}
