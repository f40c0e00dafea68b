#include "kernels/cpu/loops/fft_plan.h"

#include <algorithm>

#include "kernels/common/fft_roots.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// One butterfly's place: inputs are `in` apart, outputs `out` apart, `width` neighbours are done alike.
struct Place {
  int64_t in, out, width;
};

template <typename R>
TT_CLONES void butterfly_2(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, Place p,
                           R wr, R wi) {
  for (int64_t q = 0; q < p.width; ++q) {
    const R ar = xr[q], ai = xi[q], br = xr[p.in + q], bi = xi[p.in + q];
    const R dr = ar - br, di = ai - bi;
    yr[q] = ar + br;
    yi[q] = ai + bi;
    yr[p.out + q] = dr * wr - di * wi;
    yi[p.out + q] = dr * wi + di * wr;
  }
}

template <typename R>
TT_CLONES void butterfly_3(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, Place p,
                           const R* wr, const R* wi, R side) {  // side: -+ sqrt(3) / 2
  for (int64_t q = 0; q < p.width; ++q) {
    const R ar = xr[q], ai = xi[q];
    const R sr = xr[p.in + q] + xr[2 * p.in + q], si = xi[p.in + q] + xi[2 * p.in + q];
    const R dr = (xr[p.in + q] - xr[2 * p.in + q]) * side, di = (xi[p.in + q] - xi[2 * p.in + q]) * side;
    const R mr = ar - sr / 2, mi = ai - si / 2;
    const R br = mr - di, bi = mi + dr, cr = mr + di, ci = mi - dr;
    yr[q] = ar + sr;
    yi[q] = ai + si;
    yr[p.out + q] = br * wr[0] - bi * wi[0];
    yi[p.out + q] = br * wi[0] + bi * wr[0];
    yr[2 * p.out + q] = cr * wr[1] - ci * wi[1];
    yi[2 * p.out + q] = cr * wi[1] + ci * wr[1];
  }
}

template <typename R>
TT_CLONES void butterfly_4(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, Place p,
                           const R* wr, const R* wi, R turn) {  // turn: i's sign
  for (int64_t q = 0; q < p.width; ++q) {
    const R ar = xr[q] + xr[2 * p.in + q], ai = xi[q] + xi[2 * p.in + q];
    const R br = xr[q] - xr[2 * p.in + q], bi = xi[q] - xi[2 * p.in + q];
    const R cr = xr[p.in + q] + xr[3 * p.in + q], ci = xi[p.in + q] + xi[3 * p.in + q];
    const R dr = -turn * (xi[p.in + q] - xi[3 * p.in + q]), di = turn * (xr[p.in + q] - xr[3 * p.in + q]);
    const R er = br + dr, ei = bi + di, fr = ar - cr, fi = ai - ci, gr = br - dr, gi = bi - di;
    yr[q] = ar + cr;
    yi[q] = ai + ci;
    yr[p.out + q] = er * wr[0] - ei * wi[0];
    yi[p.out + q] = er * wi[0] + ei * wr[0];
    yr[2 * p.out + q] = fr * wr[1] - fi * wi[1];
    yi[2 * p.out + q] = fr * wi[1] + fi * wr[1];
    yr[3 * p.out + q] = gr * wr[2] - gi * wi[2];
    yi[3 * p.out + q] = gr * wi[2] + gi * wr[2];
  }
}

// Any radix, by the sum itself: outputs t and radix - t share their products.
template <typename R>
TT_CLONES void butterfly_any(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi,
                             Place p, int64_t radix, const R* cr, const R* ci, const R* wr, const R* wi) {
  for (int64_t q = 0; q < p.width; ++q) {
    R sr = xr[q], si = xi[q];
    for (int64_t j = 1; j < radix; ++j) {
      sr += xr[j * p.in + q];
      si += xi[j * p.in + q];
    }
    yr[q] = sr;
    yi[q] = si;
  }
  for (int64_t t = 1; 2 * t < radix; ++t) {
    const R ar = wr[t - 1], ai = wi[t - 1], br = wr[radix - t - 1], bi = wi[radix - t - 1];
    for (int64_t q = 0; q < p.width; ++q) {
      R er = xr[q], ei = xi[q], or_ = 0, oi = 0;
      int64_t turn = 0;
      for (int64_t j = 1; 2 * j < radix; ++j) {
        turn += t;
        if (turn >= radix) turn -= radix;
        const R c = cr[turn], s = ci[turn];
        const int64_t other = (radix - j) * p.in + q, own = j * p.in + q;
        er += c * (xr[own] + xr[other]);
        ei += c * (xi[own] + xi[other]);
        or_ -= s * (xi[own] - xi[other]);
        oi += s * (xr[own] - xr[other]);
      }
      const R pr = er + or_, pi = ei + oi, mr = er - or_, mi = ei - oi;
      yr[t * p.out + q] = pr * ar - pi * ai;
      yi[t * p.out + q] = pr * ai + pi * ar;
      yr[(radix - t) * p.out + q] = mr * br - mi * bi;
      yi[(radix - t) * p.out + q] = mr * bi + mi * br;
    }
  }
}

// y = x w, each of n rows of lines by its own w.
template <typename R>
TT_CLONES void multiply_rows(const R* xr, const R* xi, const R* wr, const R* wi, int64_t n, int64_t lines, R* yr,
                             R* yi) {
  for (int64_t k = 0; k < n; ++k) {
    const R c = wr[k], s = wi[k];
    for (int64_t l = k * lines; l < (k + 1) * lines; ++l) {
      const R re = xr[l], im = xi[l];
      yr[l] = re * c - im * s;
      yi[l] = re * s + im * c;
    }
  }
}

}  // namespace

// X[k] = w[k] sum over j of (x[j] w[j]) conj(w[k - j]) with w[k] = exp(-+pi i k^2 / n): a convolution, done by
// transforms of a length that is a power of two.
template <typename R>
struct FftPlan<R>::Chirp {
  int64_t size;
  std::vector<R> re, im;                // w
  std::vector<R> filter_re, filter_im;  // the transform of conj(w), over `size`
  std::unique_ptr<FftPlan> there, back;
};

template <typename R>
FftPlan<R>::FftPlan(int64_t n, bool forward) : n_(n), forward_(forward) {
  const std::vector<int64_t> factors = radices(n);
  int64_t before = 1;
  for (int64_t radix : factors) {
    add_stage(radix, before, n / before);
    before *= radix;
  }
  if (n == 1 || !factors.empty()) return;
  chirp_ = std::make_unique<Chirp>();
  Chirp& c = *chirp_;
  c.size = 1;
  while (c.size < 2 * n - 1) c.size *= 2;
  c.there = std::make_unique<FftPlan>(c.size, true);
  c.back = std::make_unique<FftPlan>(c.size, false);
  c.re.resize(n);
  c.im.resize(n);
  std::vector<R> fr(c.size), fi(c.size), wr(c.size), wi(c.size);
  for (int64_t k = 0; k < n; ++k) {
    const Root w = chirp_of(k, n, forward);
    c.re[k] = static_cast<R>(w.re);
    c.im[k] = static_cast<R>(w.im);
    const int64_t mirror = k == 0 ? 0 : c.size - k;
    fr[k] = fr[mirror] = static_cast<R>(w.re / static_cast<double>(c.size));
    fi[k] = fi[mirror] = static_cast<R>(-w.im / static_cast<double>(c.size));
  }
  const Split<R> filter = c.there->run({fr.data(), fi.data()}, {wr.data(), wi.data()}, 1);
  c.filter_re.assign(filter.re, filter.re + c.size);
  c.filter_im.assign(filter.im, filter.im + c.size);
}

template <typename R>
FftPlan<R>::~FftPlan() = default;

template <typename R>
void FftPlan<R>::add_stage(int64_t radix, int64_t before, int64_t left) {
  Stage stage{radix, before, left / radix, {}, {}, {}, {}};
  for (int64_t k = 0; k < stage.rest; ++k) {
    for (int64_t t = 1; t < radix; ++t) {
      const Root w = root_of_unity(k * t, left, forward_);
      stage.re.push_back(static_cast<R>(w.re));
      stage.im.push_back(static_cast<R>(w.im));
    }
  }
  for (int64_t j = 0; j < radix; ++j) {
    const Root w = root_of_unity(j, radix, forward_);
    stage.circle_re.push_back(static_cast<R>(w.re));
    stage.circle_im.push_back(static_cast<R>(w.im));
  }
  stages_.push_back(std::move(stage));
}

template <typename R>
int64_t FftPlan<R>::room(int64_t lines) const {
  return (chirp_ ? chirp_->size : n_) * lines;
}

template <typename R>
Split<R> FftPlan<R>::run(Split<R> data, Split<R> work, int64_t lines) const {
  if (chirp_) return run_chirp(data, work, lines);
  for (const Stage& s : stages_) {
    const int64_t width = s.before * lines;
    for (int64_t k = 0; k < s.rest; ++k) {
      const R *xr = data.re + k * width, *xi = data.im + k * width;
      R *yr = work.re + k * s.radix * width, *yi = work.im + k * s.radix * width;
      const R *wr = s.re.data() + k * (s.radix - 1), *wi = s.im.data() + k * (s.radix - 1);
      const Place place{s.rest * width, width, width};
      if (s.radix == 4)
        butterfly_4(xr, xi, yr, yi, place, wr, wi, forward_ ? R(-1) : R(1));
      else if (s.radix == 2)
        butterfly_2(xr, xi, yr, yi, place, wr[0], wi[0]);
      else if (s.radix == 3)
        butterfly_3(xr, xi, yr, yi, place, wr, wi, s.circle_im[1]);
      else
        butterfly_any(xr, xi, yr, yi, place, s.radix, s.circle_re.data(), s.circle_im.data(), wr, wi);
    }
    std::swap(data, work);
  }
  return data;
}

template <typename R>
Split<R> FftPlan<R>::run_chirp(Split<R> data, Split<R> work, int64_t lines) const {
  const Chirp& c = *chirp_;
  multiply_rows(data.re, data.im, c.re.data(), c.im.data(), n_, lines, data.re, data.im);
  std::fill(data.re + n_ * lines, data.re + c.size * lines, R(0));
  std::fill(data.im + n_ * lines, data.im + c.size * lines, R(0));
  Split<R> spectrum = c.there->run(data, work, lines);
  multiply_rows(spectrum.re, spectrum.im, c.filter_re.data(), c.filter_im.data(), c.size, lines, spectrum.re,
                spectrum.im);
  Split<R> result = c.back->run(spectrum, spectrum.re == data.re ? work : data, lines);
  multiply_rows(result.re, result.im, c.re.data(), c.im.data(), n_, lines, result.re, result.im);
  return result;
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace tt::cpu
