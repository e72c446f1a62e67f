// What JSX is compiled to: see build.js.
export { Fragment, h } from 'preact'
