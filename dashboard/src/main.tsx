// The style sheets come first: those of the pages build on them.
import './design/tokens.css'
import './design/base.css'
import './design/overlays.css'
import { i18n } from '@lingui/core'
import { I18nProvider } from '@lingui/react'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { handleKey } from './app/keyboard'
import { applyTheme, preferences } from './app/preferences'
import { queryClient, router } from './app/router'
import { activate } from './i18n/i18n'

applyTheme()
document.addEventListener('keydown', handleKey)
await activate(preferences().language)

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
createRoot(root).render(
  <StrictMode>
    <I18nProvider i18n={i18n}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  </StrictMode>,
)
