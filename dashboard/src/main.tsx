// The style sheets come first: those of the pages build on them.
import './design/tokens.css'
import './design/base.css'
import './design/overlays.css'
import { i18n } from '@lingui/core'
import { I18nProvider } from '@lingui/react'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { I18nProvider as LocaleProvider } from 'react-aria-components'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { handleKey } from './app/keyboard'
import { applyTheme, preferences, usePreferences } from './app/preferences'
import { queryClient, router } from './app/router'
import { activate } from './i18n/i18n'

applyTheme()
document.addEventListener('keydown', handleKey)
await activate(preferences().language)

/** The component library speaks the chosen language too, not the browser's. */
function Localised() {
  const { language } = usePreferences()
  return (
    <LocaleProvider locale={language}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </LocaleProvider>
  )
}

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
createRoot(root).render(
  <StrictMode>
    <I18nProvider i18n={i18n}>
      <Localised />
    </I18nProvider>
  </StrictMode>,
)
