import { defineConfig } from '@playwright/test'

export default defineConfig({
  testDir: 'e2e',
  // One server and one browser: the machine belongs to the jobs that run on it.
  workers: 1,
  fullyParallel: false,
  forbidOnly: true,
  retries: 0,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: 'line',
  outputDir: 'test-results',
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    locale: 'en',
    timezoneId: 'Asia/Taipei',
    launchOptions: { executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    trace: 'off',
  },
})
