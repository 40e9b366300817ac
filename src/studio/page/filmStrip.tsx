/** The run over time, on one canvas, and the slider of its revisions. */

import { computed } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { Icon } from "./icons.tsx"
import { goLive, isLive, playing, revision, run, setRevision } from "./openRun.ts"
import { loudness, type Span, spansOf, type Strip, stripsOf } from "./rows.ts"
import { isDark } from "./theme.ts"

export const FilmStrip = () => {
  const last = run.value?.journal.revision ?? 0
  usePlaying()
  const journal = run.value?.journal
  const row = journal?.rows[journal.rowAt(revision.value)]
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
          <Icon name="chevron-left" />
        </button>
        <button aria-label="Next revision" onClick={() => setRevision(revision.value + 1)}>
          <Icon name="chevron-right" />
        </button>
        {[1, 4, 16].map((speed) => (
          <button
            key={speed}
            class={speed === 1 ? "" : "faster"}
            aria-pressed={playing.value === speed}
            onClick={() => (playing.value = playing.value === speed ? 0 : speed)}
          >
            {speed}x
          </button>
        ))}
        <button aria-pressed={isLive.value} onClick={goLive}>
          Live
        </button>
      </p>
    </div>
  )
}

/** Advances the revision while the run plays: once per second at 1x. */
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

interface Drawn {
  readonly of: ReadonlyArray<Span>
  readonly width: number
  readonly strips: ReadonlyArray<Strip>
}

const spans = computed(() => spansOf(run.value?.journal.rows ?? []))

const Canvas = () => {
  const ref = useRef<HTMLCanvasElement>(null)
  const strips = useRef<Drawn>(undefined)
  const at = revision.value
  const all = spans.value
  const theme = isDark.value
  useEffect(() => {
    const canvas = ref.current
    if (canvas === null) return
    const width = canvas.clientWidth
    if (strips.current?.of !== all || strips.current.width !== width) {
      strips.current = { of: all, width, strips: stripsOf(all, width) }
    }
    draw(canvas, strips.current.strips, at)
  }, [all, at, theme])
  const jump = (event: MouseEvent) => {
    const whole = all.at(-1)?.to ?? 1
    const x = (event.offsetX / (ref.current?.clientWidth ?? 1)) * whole
    const found = all.find(({ to }) => to >= x)
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

const draw = (canvas: HTMLCanvasElement, strips: ReadonlyArray<Strip>, at: number): void => {
  const pen = canvas.getContext("2d")
  if (pen === null) return
  if (canvas.width === canvas.clientWidth) pen.clearRect(0, 0, canvas.width, canvas.height)
  else canvas.width = canvas.clientWidth
  const colors = colorsOf(canvas)
  // Drawn kind by kind, since a change of color costs more than a rectangle.
  for (const kind of loudness) {
    pen.fillStyle = colors[kind]
    for (const strip of strips) {
      if (strip.kind !== kind) continue
      pen.globalAlpha = strip.revision <= at ? 1 : 0.3
      pen.fillRect(strip.x, kind === "waiting" ? 8 : 2, strip.width, kind === "waiting" ? 6 : 18)
    }
  }
}

type Colors = Readonly<Record<Span["kind"], string>>

const themes: { light?: Colors; dark?: Colors } = {}

/**
 * Returns the colors of the theme. A canvas does not support `light-dark()`, so each is computed once as the color of
 * the element.
 */
const colorsOf = (canvas: HTMLCanvasElement): Colors => {
  const of = (kind: string) => {
    canvas.style.color = `var(--${kind})`
    return getComputedStyle(canvas).color
  }
  return (themes[isDark.value ? "dark" : "light"] ??= {
    model: of("model"),
    skill: of("skill"),
    waiting: of("waiting"),
    error: of("error"),
    other: of("other")
  })
}
