import { useEffect, useState } from 'preact/hooks'

const shownMs = 1600

/** A command and a button that copies it. Browsers without a clipboard show no button. */
export function Copy({ text }: { readonly text: string }) {
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    if (!isDone) return
    const timer = setTimeout(() => setDone(false), shownMs)
    return () => clearTimeout(timer)
  }, [isDone])
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setDone(true),
      () => {},
    )
  return (
    <div class="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a command that is cut off can be scrolled with the keyboard */}
      <code tabIndex={0}>{text}</code>
      {'clipboard' in navigator && (
        <button type="button" class="plain" onClick={copy} aria-label={`Copy: ${text}`}>
          <span aria-live="polite">{isDone ? 'Copied' : 'Copy'}</span>
        </button>
      )}
    </div>
  )
}
