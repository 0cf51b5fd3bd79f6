// All public headers beside macros that headers of others define, which many programs include
// before ours. The standard's and Eigen's come first: what they do with such macros is their
// business.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <unsupported/Eigen/CXX11/Tensor>

// <X11/X.h>, <X11/Xlib.h>, <X11/Xutil.h>
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Always 2
#define Success 0
#define Above 0
#define Below 1
#define Complex 0
#define Convex 2
#define Unsorted 0
#define CursorShape 0
#define CurrentTime 0L
#define KeyPress 2
#define FocusIn 9
#define GrayScale 1
#define AllValues 0x000F
// <windows.h>
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define near
#define far
#define small char
#define hyper long long
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define BOOL int
#define TRUE 1
#define FALSE 0
#define ERROR 0
#define NO_ERROR 0
#define DELETE 0x00010000L
#define STRICT 1
#define ABSOLUTE 1
#define RELATIVE 2
#define DIFFERENCE 11
// <math.h> of old C libraries
#define DOMAIN 1
#define SING 2
#define OVERFLOW 3
#define UNDERFLOW 4
#define PLOSS 6
// <sys/sysmacros.h>, <complex.h>, <termios.h>, <ctype.h> of newlib, and what GCC defines without
// -std
#define major(device) ((device) >> 8)
#define minor(device) ((device)&255)
#define makedev(a, b) ((a) << 8 | (b))
#define I 1.0i
#define B0 0
#define _U 01
#define _L 02
#define _N 04
#define _S 010
#define _P 020
#define _C 040
#define _X 0100
#define _B 0200
#define linux 1
#define unix 1
// Qt, Objective-C
#define emit
#define foreach for
#define signals public
#define slots
#define YES 1
#define NO 0
#define Nil 0
#define nil 0
// Of many a project
#define DEBUG 1
#define INFO 2
#define PI 3.14159265358979323846
#define EPSILON 1e-6
#define likely(x) (x)
#define unlikely(x) (x)

#include "public_headers.hpp"  // written by CMake: each of them

#ifndef Bool
#error "a header of ein undefines what is another's"
#endif
