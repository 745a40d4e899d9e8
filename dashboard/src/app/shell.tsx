// What surrounds every page: the rail, the bar above, the keys that work everywhere.
import { useQuery } from '@tanstack/react-query'
import { Outlet, useRouter, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { Button } from 'react-aria-components'
import { meQuery } from '../session/me'
import { useT } from '../i18n/i18n'
import { Icon } from '../design/icons'
import { Failure, Window } from '../design/parts'
import { LiveBridge } from '../live/bridge'
import { LiveChip } from '../live/chip'
import { useShortcuts } from './keyboard'
import { Rail } from './rail'
import { LanguageMenu, ThemeMenu, UserMenu, ZoneButton } from './menus'
import { nextTheme } from './themes'
import './shell.css'

const Palette = lazy(() => import('./palette'))
const Keys = lazy(() => import('./keys'))

type Open = 'palette' | 'keys' | 'rail' | null

export function Shell() {
  const t = useT()
  const router = useRouter()
  const me = useQuery(meQuery)
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  useShortcuts([
    { keys: '?', label: 'keys.help', run: () => setOpen('keys') },
    { keys: 'Ctrl+K', label: 'keys.palette', run: () => setOpen('palette') },
    { keys: 'g o', label: 'keys.overview', run: () => void router.navigate({ to: '/' }) },
    { keys: 'g j', label: 'keys.jobs', run: () => void router.navigate({ to: '/jobs' }) },
    { keys: 'g n', label: 'keys.nodes', run: () => void router.navigate({ to: '/nodes' }) },
    { keys: 'g s', label: 'keys.submit', run: () => void router.navigate({ to: '/submit' }) },
    { keys: 'g a', label: 'keys.audit', run: () => void router.navigate({ to: '/audit' }) },
    { keys: 't', label: 'keys.theme', run: nextTheme },
  ])
  return (
    <div className="shell">
      <SkipLink />
      <LiveBridge />
      <header className="bar">
        <Button className="button quiet icon rail-button" aria-label={t('nav.open')} onPress={() => setOpen('rail')}>
          <Icon name="menu" />
        </Button>
        <Button className="button palette-button" onPress={() => setOpen('palette')}>
          <span className="cut">{t('palette.button')}</span>
          <kbd>Ctrl K</kbd>
        </Button>
        <div className="bar-end">
          <LiveChip />
          <ZoneButton />
          <ThemeMenu />
          <LanguageMenu />
          <UserMenu me={me.data} showKeys={() => setOpen('keys')} />
        </div>
      </header>
      <div className="rail-wide">
        <Rail me={me.data} />
      </div>
      <Main>{me.error && !me.data ? <Stopped error={me.error} /> : <Outlet />}</Main>
      {open === 'rail' && (
        <Window title="Jobyard" onClose={close}>
          <Rail me={me.data} onNavigate={close} />
        </Window>
      )}
      <Suspense>
        {open === 'palette' && <Palette onClose={close} />}
        {open === 'keys' && <Keys onClose={close} />}
      </Suspense>
    </div>
  )
}

function SkipLink() {
  const t = useT()
  return (
    <button type="button" className="skip" onClick={() => document.querySelector('main')?.focus()}>
      {t('nav.skip')}
    </button>
  )
}

/** Takes the focus when another page comes, so that a reader of screens hears where it is. */
function Main({ children }: { children: React.ReactNode }) {
  const element = useRef<HTMLElement>(null)
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname })
  const first = useRef<string | undefined>(undefined)
  useEffect(() => {
    if (first.current !== undefined && first.current !== path) element.current?.focus({ preventScroll: true })
    first.current = path
  }, [path])
  return (
    <main ref={element} tabIndex={-1}>
      {children}
    </main>
  )
}

function Stopped({ error }: { error: unknown }) {
  return (
    <div className="page">
      <Failure error={error} />
    </div>
  )
}
