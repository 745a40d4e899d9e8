// What this reader chose, kept in the browser: theme, language, zone, density, shortcuts, columns.
import { useSyncExternalStore } from 'react'
import { pickLanguage, type Language } from '../i18n/i18n'

export interface Preferences {
  theme: 'system' | 'light' | 'dark'
  language: Language
  zone: 'local' | 'utc'
  density: 'comfortable' | 'compact'
  /** Single-letter shortcuts; whoever speaks to the machine turns them off (WCAG 2.1.4). */
  shortcuts: boolean
  hiddenColumns: string[]
  logWrap: boolean
  logTimes: 'absolute' | 'relative' | 'none'
}

const storageKey = 'jobyard.preferences'
const listeners = new Set<() => void>()
let current: Preferences = read()

function read(): Preferences {
  const defaults: Preferences = {
    theme: 'system',
    language: pickLanguage(navigator.languages),
    zone: 'local',
    density: 'compact',
    shortcuts: true,
    hiddenColumns: ['kind', 'pool', 'priority', 'submitted_by'],
    logWrap: true,
    logTimes: 'absolute',
  }
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '{}')
    return typeof stored === 'object' ? { ...defaults, ...stored } : defaults
  } catch {
    // Storage that is forbidden or holds something else: the defaults serve.
    return defaults
  }
}

export function preferences(): Preferences {
  return current
}

export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change }
  try {
    localStorage.setItem(storageKey, JSON.stringify(current))
  } catch {
    // A browser without storage forgets the choice with the page.
  }
  applyTheme()
  for (const listener of listeners) listener()
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = current.theme
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, preferences)
}
