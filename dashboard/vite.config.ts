import { readFileSync } from 'node:fs'
import optimizeLocales from '@react-aria/optimize-locales-plugin'
import react from '@vitejs/plugin-react'
import { compileMessage } from '@lingui/message-utils/compileMessage'
import { defineConfig } from 'vitest/config'
import type { Plugin } from 'vite'

/** Turns the ICU messages of a catalogue into what Lingui runs, so that no message parser is shipped. */
function catalogues(): Plugin {
  return {
    name: 'catalogues',
    enforce: 'pre',
    load(id) {
      const path = id.split('?')[0] ?? id
      if (!/\/src\/i18n\/catalogues\/[\w-]+\.json$/.test(path)) return null
      const messages = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
      const compiled = Object.fromEntries(Object.entries(messages).map(([key, text]) => [key, compileMessage(text)]))
      this.addWatchFile(path)
      return { code: `export default JSON.parse(${JSON.stringify(JSON.stringify(compiled))})`, moduleType: 'js' }
    },
  }
}

// While developing, calls go to a running server: JOBYARD_URL and JOBYARD_TOKEN say which one and with what right.
const server = process.env['JOBYARD_URL'] ?? 'http://127.0.0.1:7700'
const token = process.env['JOBYARD_TOKEN']
const proxied = { target: server, headers: token ? { authorization: `Bearer ${token}` } : {} }

export default defineConfig({
  base: './',
  plugins: [
    catalogues(),
    // Of react-aria's own texts only the languages that the dashboard has.
    { ...optimizeLocales.vite({ locales: ['en-US', 'zh-TW', 'zh-CN'] }), enforce: 'pre' },
    react(),
  ],
  build: {
    target: 'es2023',
    manifest: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
  },
  server: { proxy: { '/api': proxied, '/readyz': proxied } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
})
