import { preferences, setPreferences, type Preferences } from './preferences'

export const themes: readonly Preferences['theme'][] = ['system', 'light', 'dark']

/** Goes to the next theme in the order of the menu. */
export function nextTheme(): void {
  const next = themes[(themes.indexOf(preferences().theme) + 1) % themes.length]
  setPreferences({ theme: next ?? 'system' })
}
