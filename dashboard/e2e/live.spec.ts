// What happens is seen without a reload, and also after the server was gone.
import { expect, test } from './stories'

test('a new job comes into the list, and its end is seen there', async ({ page, yard }) => {
  await page.goto('/jobs?label=live%3Ayes')
  await expect(page.getByRole('button', { name: /^Live/ })).toBeVisible()
  const id = await yard.submit('seen-live', 'read line < /dev/null; sleep 1', { labels: { live: 'yes' } })
  const row = page.getByRole('row', { name: /seen-live/ })
  await expect(row).toContainText(/Waiting|Running/)
  await yard.until(id, 'success')
  await expect(row).toContainText('Success')
})

test('nothing moves under the pointer', async ({ page, yard }) => {
  await yard.until(await yard.submit('steady-1', 'true', { labels: { steady: 'yes' } }), 'success')
  await page.goto('/jobs?label=steady%3Ayes')
  await page.getByRole('row', { name: /steady-1/ }).hover()
  await yard.until(await yard.submit('steady-2', 'true', { labels: { steady: 'yes' } }), 'success')
  const pill = page.getByRole('button', { name: /1 change, show it/ })
  await expect(pill).toBeVisible()
  await expect(page.getByRole('row', { name: /steady-2/ })).toHaveCount(0)
  await pill.click()
  await expect(page.getByRole('row', { name: /steady-2/ })).toBeVisible()
})

test('a paused page stands still, and catches up when it goes on', async ({ page, yard }) => {
  await page.goto('/jobs?label=paused%3Ayes')
  await page.getByRole('button', { name: /^Live/ }).click()
  await expect(page.getByRole('button', { name: /^Paused/ })).toBeVisible()
  await yard.until(await yard.submit('while-paused', 'true', { labels: { paused: 'yes' } }), 'success')
  await expect(page.getByRole('row', { name: /while-paused/ })).toHaveCount(0)
  await page.getByRole('button', { name: /^Paused/ }).click()
  await expect(page.getByRole('row', { name: /while-paused/ })).toContainText('Success')
})

test('a page says that the server is gone, and is right again when it is back', async ({ page, yard }) => {
  const id = await yard.submit('survivor', 'sleep 3')
  await yard.until(id, 'running')
  await page.goto(`/jobs/${id}`)
  await expect(page.getByText(/Running on/)).toBeVisible()
  await yard.kill()
  await expect(page.getByRole('button', { name: /^(Reconnecting|Every 5 s)/ })).toBeVisible()
  await yard.start()
  await yard.until(id, 'success')
  await expect(page.getByRole('button', { name: /^Live/ })).toBeVisible({ timeout: 30_000 })
  await expect(page.getByText(/Succeeded on/)).toBeVisible()
})
