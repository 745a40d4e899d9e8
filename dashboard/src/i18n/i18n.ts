// Languages: which there are, which one this reader gets, and `t`, the text of a key.
import { i18n } from '@lingui/core'
import { useLingui } from '@lingui/react'
import { useCallback } from 'react'
import type english from './catalogues/en.json'

export type Key = keyof typeof english
export type Values = Record<string, string | number>
export type Language = 'en' | 'zh-TW' | 'zh-CN'
export type Translate = (key: Key, values?: Values) => string

/** Each in its own name, as the reader looks for it. */
export const languages: Record<Language, string> = { en: 'English', 'zh-TW': '繁體中文', 'zh-CN': '简体中文' }

const load = {
  en: () => import('./catalogues/en.json'),
  'zh-TW': () => import('./catalogues/zh-TW.json'),
  'zh-CN': () => import('./catalogues/zh-CN.json'),
}

/** The first of the reader's languages that there is a catalogue for; by script, so that zh-HK reads Traditional. */
export function pickLanguage(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const locale = parseLocale(tag)
    if (locale?.language === 'en') return 'en'
    if (locale?.language === 'zh') return locale.maximize().script === 'Hant' ? 'zh-TW' : 'zh-CN'
  }
  return 'en'
}

function parseLocale(tag: string): Intl.Locale | null {
  try {
    return new Intl.Locale(tag)
  } catch {
    return null
  }
}

export async function activate(language: Language): Promise<void> {
  const catalogue = await load[language]()
  // The build turns messages into what Lingui runs; the types say what stands in the file.
  i18n.loadAndActivate({ locale: language, messages: catalogue.default as Record<string, string> })
  document.documentElement.lang = language
}

/** For code outside of components; those use `useT`. */
export const t: Translate = (key, values) => i18n._(key, values)

export function useT(): Translate {
  const { i18n } = useLingui()
  // A new function for each language, so that whatever depends on it is computed anew.
  // oxlint-disable-next-line react/exhaustive-deps
  return useCallback<Translate>((key, values) => i18n._(key, values), [i18n.locale])
}

export function language(): Language {
  return i18n.locale as Language
}
