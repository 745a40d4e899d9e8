/** Copies a text; also where the page came over plain http, which has no clipboard API. Says whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'hidden-text'
  const focused = document.activeElement
  document.body.append(area)
  area.select()
  try {
    // Deprecated, and the only way without a secure context.
    return document.execCommand('copy')
  } catch {
    return false
  } finally {
    area.remove()
    if (focused instanceof HTMLElement) focused.focus()
  }
}
