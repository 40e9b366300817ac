/** The run over time, on one canvas, and the slider of its revisions. */

import { useEffect, useRef } from "preact/hooks"
import { goLive, isLive, playing, revision, run, setRevision } from "./pageStore.ts"
import { type Span, spansOf } from "./rows.ts"

export const FilmStrip = () => {
  const last = run.value?.journal.revision ?? 0
  usePlaying()
  const row = run.value?.journal.rows.find((row) => row.revision === revision.value)
  return (
    <div class="film">
      <Canvas />
      <p>
        <input
          type="range"
          min={1}
          max={Math.max(1, last)}
          value={revision.value}
          aria-label="Revision"
          aria-valuetext={`revision ${revision.value} of ${last}, ${row?.type ?? ""} ${row?.text ?? ""}`}
          onInput={(event) => setRevision(Number(event.currentTarget.value))}
        />
        <output>
          rev {revision.value} of {last}
        </output>
        <button aria-label="Previous revision" onClick={() => setRevision(revision.value - 1)}>
          ‹
        </button>
        <button aria-label="Next revision" onClick={() => setRevision(revision.value + 1)}>
          ›
        </button>
        {[1, 4, 16].map((speed) => (
          <button
            key={speed}
            aria-pressed={playing.value === speed}
            onClick={() => (playing.value = playing.value === speed ? 0 : speed)}
          >
            {speed}x
          </button>
        ))}
        <button aria-pressed={isLive.value} onClick={goLive}>
          LIVE
        </button>
      </p>
    </div>
  )
}

/** Moves the revision on while it plays: once per second at 1x. */
const usePlaying = () => {
  const speed = playing.value
  useEffect(() => {
    if (speed === 0 || matchMedia("(prefers-reduced-motion: reduce)").matches) return
    if (isLive.value) setRevision(1)
    const timer = setInterval(() => {
      if (revision.value >= (run.value?.journal.revision ?? 0)) playing.value = 0
      else setRevision(revision.value + 1)
    }, 1_000 / speed)
    return () => clearInterval(timer)
  }, [speed])
}

const Canvas = () => {
  const ref = useRef<HTMLCanvasElement>(null)
  const version = run.value?.version
  const at = revision.value
  useEffect(() => {
    if (ref.current !== null) draw(ref.current, at)
  }, [version, at])
  const jump = (event: MouseEvent) => {
    const spans = spansOf(run.value?.journal.rows ?? [])
    const whole = spans.at(-1)?.to ?? 1
    const x = (event.offsetX / (ref.current?.clientWidth ?? 1)) * whole
    const found = spans.find(({ to }) => to >= x)
    if (found !== undefined) setRevision(found.revision)
  }
  return (
    <canvas
      ref={ref}
      height={22}
      onClick={jump}
      role="img"
      aria-label="Time of the run: model, skills, waits and errors"
    />
  )
}

const draw = (canvas: HTMLCanvasElement, at: number): void => {
  const spans = spansOf(run.value?.journal.rows ?? [])
  const whole = spans.at(-1)?.to ?? 1
  canvas.width = canvas.clientWidth
  const pen = canvas.getContext("2d")
  if (pen === null) return
  const colors = colorsOf(canvas)
  for (const { from, kind, revision, to } of spans) {
    const x = (from / whole) * canvas.width
    const width = Math.max(kind === "error" ? 3 : 1, ((to - from) / whole) * canvas.width)
    pen.globalAlpha = revision <= at ? 1 : 0.3
    pen.fillStyle = colors[kind]
    pen.fillRect(x, kind === "waiting" ? 8 : 2, width, kind === "waiting" ? 6 : 18)
  }
}

/** The colors of the theme. A canvas knows no `light-dark()`, so each is computed as the color of the element. */
const colorsOf = (canvas: HTMLCanvasElement): Readonly<Record<Span["kind"], string>> => {
  const of = (kind: string) => {
    canvas.style.color = `var(--${kind})`
    return getComputedStyle(canvas).color
  }
  return { model: of("model"), skill: of("skill"), waiting: of("waiting"), error: of("error"), other: of("other") }
}
