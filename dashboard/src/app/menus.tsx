// The bar's menus: zone, theme, language, user.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { Button, Menu, MenuItem, MenuTrigger, Popover, type Selection } from 'react-aria-components'
import type { Schemas } from '../api/client'
import { activate, language, languages, useT, type Language } from '../i18n/i18n'
import { Icon } from '../design/icons'
import { signOut } from '../session/me'
import { zoneName } from '../time/format'
import { setPreferences, usePreferences } from './preferences'
import { themes } from './themes'

function only(selection: Selection): string {
  return selection === 'all' ? '' : String([...selection][0] ?? '')
}

export function ThemeMenu() {
  const t = useT()
  const { theme } = usePreferences()
  return (
    <MenuTrigger>
      <Button className="button quiet icon wide-only" aria-label={t('theme.label')}>
        <Icon name={theme} />
      </Button>
      <Popover className="popover">
        <Menu
          aria-label={t('theme.label')}
          selectionMode="single"
          disallowEmptySelection
          selectedKeys={[theme]}
          onSelectionChange={(chosen) =>
            setPreferences({ theme: themes.find((each) => each === only(chosen)) ?? 'system' })
          }
        >
          {themes.map((each) => (
            <MenuItem key={each} id={each}>
              {t(`theme.${each}`)}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  )
}

async function choose(next: Language) {
  setPreferences({ language: next })
  await activate(next)
}

export function LanguageMenu() {
  const t = useT()
  return (
    <MenuTrigger>
      <Button className="button quiet wide-only" aria-label={t('language.label')}>
        <span lang={language()}>{{ en: 'EN', 'zh-TW': '繁', 'zh-CN': '简' }[language()]}</span>
      </Button>
      <Popover className="popover">
        <LanguageItems />
      </Popover>
    </MenuTrigger>
  )
}

function LanguageItems() {
  const t = useT()
  return (
    <Menu
      aria-label={t('language.label')}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[language()]}
      onSelectionChange={(chosen) => void choose(only(chosen) as Language)}
    >
      {Object.entries(languages).map(([tag, name]) => (
        <MenuItem key={tag} id={tag} textValue={name}>
          <span lang={tag}>{name}</span>
        </MenuItem>
      ))}
    </Menu>
  )
}

export function ZoneButton() {
  const t = useT()
  const { zone } = usePreferences()
  return (
    <Button
      className="button quiet wide-only"
      aria-label={t('zone.label', { zone: zoneName(new Date(), language(), zone) })}
      onPress={() => setPreferences({ zone: zone === 'utc' ? 'local' : 'utc' })}
    >
      {zoneName(new Date(), language(), zone)}
    </Button>
  )
}

interface UserMenuProps {
  me: Schemas['Me'] | undefined
  showKeys: () => void
}

export function UserMenu({ me, showKeys }: UserMenuProps) {
  const t = useT()
  const router = useRouter()
  const client = useQueryClient()
  const { shortcuts, zone, theme } = usePreferences()
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: async () => {
      await router.navigate({ to: '/login' })
      client.clear()
    },
  })
  const act = (key: string | number) => {
    if (key === 'keys') showKeys()
    if (key === 'shortcuts') setPreferences({ shortcuts: !shortcuts })
    if (key === 'zone') setPreferences({ zone: zone === 'utc' ? 'local' : 'utc' })
    if (key === 'theme') setPreferences({ theme: theme === 'dark' ? 'light' : 'dark' })
    const tag = Object.keys(languages).find((each) => key === `language ${each}`)
    if (tag) void choose(tag as Language)
    if (key === 'out') leave.mutate()
  }
  return (
    <MenuTrigger>
      <Button className="button quiet user-button" aria-label={t('user.label', { name: me?.name ?? '' })}>
        <span className="cut">{me?.name ?? '…'}</span>
      </Button>
      <Popover className="popover">
        {me && (
          <header>
            {me.name} · {t(`role.${me.role}`)}
            {me.owners.length > 0 && <> · {me.owners.join(', ')}</>}
          </header>
        )}
        <Menu aria-label={t('user.menu')} onAction={act}>
          <MenuItem id="keys">{t('keys.help')}</MenuItem>
          <MenuItem id="shortcuts">{shortcuts ? t('keys.turn_off') : t('keys.turn_on')}</MenuItem>
          <MenuItem id="zone">{zone === 'utc' ? t('zone.show_local') : t('zone.show_utc')}</MenuItem>
          <MenuItem id="theme">{theme === 'dark' ? t('theme.to_light') : t('theme.to_dark')}</MenuItem>
          {Object.entries(languages).map(([tag, name]) => (
            <MenuItem key={tag} id={`language ${tag}`} textValue={name}>
              <span lang={tag}>{name}</span>
            </MenuItem>
          ))}
          <MenuItem id="out">{t('user.sign_out')}</MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  )
}
