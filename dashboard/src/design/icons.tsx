// Signs of buttons, drawn so that no font has to have them.
const paths = {
  copy: 'M5.5 5.5V3.2c0-.4.3-.7.7-.7h6.1c.4 0 .7.3.7.7v6.1c0 .4-.3.7-.7.7h-2.3M3.7 5.5h5.6c.4 0 .7.3.7.7v6.1c0 .4-.3.7-.7.7H3.7c-.4 0-.7-.3-.7-.7V6.2c0-.4.3-.7.7-.7z',
  done: 'M3 8.6l3.2 3.2L13 4.8',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  down: 'M8 3v9M4.5 8.5L8 12l3.5-3.5',
  up: 'M8 13V4M4.5 7.5L8 4l3.5 3.5',
  open: 'M4.5 6.5L8 10l3.5-3.5',
  system: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  light:
    'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1',
  dark: 'M12.8 9.8A5.4 5.4 0 0 1 6.2 3.2a5.4 5.4 0 1 0 6.6 6.6z',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="sign" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
