import { build, install } from './steps.js'

install()
build()
